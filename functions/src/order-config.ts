/**
 * The part of the environment that in-order delivery needs: how long a process may have a stream, and what becomes of
 * messages that fail for good and of numbers that do not come.
 */
import type { Duration } from 'pubsub-guarantees';
import { bad, choice, duration, type Environment, optional } from 'pubsub-guarantees/environment';

export type OrderConfig = Readonly<{
  /** How long one process may have a stream without progress; above the time that one forward takes. */
  lease: Duration;
  /** The first number of a stream that is not known yet, or the publisher's counter says it. */
  start: number | 'counter';
  /** How often a number is started before it counts as poison. */
  maxAttempts: number;
  /** What becomes of a message that fails for good. */
  onPoison: 'block' | 'skip';
  /** What becomes of numbers that do not come. */
  onGap: 'wait' | 'skip';
  gap: Readonly<{ timeout: Duration }>;
  /** What becomes of a number that is done and whose content is not remembered any more. */
  onUnknownStale: 'deadLetter' | 'ack';
  /** What a stream belongs to: one subscription, or the function. */
  scope: 'source' | 'consumer';
}>;

export function orderConfig(environment: Environment): OrderConfig {
  return {
    lease: duration(environment, 'ORDER_LEASE', '60s', { least: '1s' }),
    start:
      optional(environment, 'ORDER_START') === 'counter'
        ? 'counter'
        : whole(environment, 'ORDER_START', 1, ', or counter'),
    maxAttempts: whole(environment, 'ORDER_MAX_ATTEMPTS', 10),
    onPoison: choice(environment, 'ORDER_ON_POISON', ['block', 'skip']),
    onGap: choice(environment, 'ORDER_ON_GAP', ['wait', 'skip']),
    gap: {
      timeout: duration(environment, 'ORDER_GAP_TIMEOUT', '5m', { least: '1s' }),
    },
    onUnknownStale: choice(environment, 'ORDER_ON_UNKNOWN_STALE', ['deadLetter', 'ack']),
    scope: choice(environment, 'ORDER_SCOPE', ['source', 'consumer']),
  };
}

function whole(environment: Environment, variable: string, standard: number, or = ''): number {
  const value = optional(environment, variable);
  if (value === undefined) return standard;
  const number = /^[1-9][0-9]{0,15}$/.test(value) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw bad(variable, value, `a whole number from 1${or}`);
  return number;
}
