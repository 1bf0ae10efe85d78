/**
 * The part of the environment that in-order delivery needs: how long a process may have a stream, and what becomes of
 * messages that fail for good and of numbers that do not come.
 */
import type { Duration } from 'pubsub-guarantees';
import { bad, choice, duration, type Environment, optional } from 'pubsub-guarantees/environment';

export type OrderConfig = Readonly<{
  /** How long one process may hold a key without progress; above the time that one forward takes. */
  lease: Duration;
  /** The first number of a stream that is not known yet, or the publisher's counter says it. */
  start: number | 'counter';
  /** How often a number is started before it is poison. */
  maxAttempts: number;
  poison: 'halt' | 'skip';
  gap: Readonly<{ policy: 'wait' | 'skip'; timeout: Duration }>;
}>;

export function orderConfig(environment: Environment): OrderConfig {
  return {
    lease: duration(environment, 'ORDER_LEASE', '60s', { least: '1s' }),
    start:
      optional(environment, 'ORDER_START') === 'counter'
        ? 'counter'
        : whole(environment, 'ORDER_START', 1, ', or counter'),
    maxAttempts: whole(environment, 'ORDER_MAX_ATTEMPTS', 10),
    poison: choice(environment, 'ORDER_POISON', ['halt', 'skip']),
    gap: {
      policy: choice(environment, 'ORDER_GAP', ['wait', 'skip']),
      timeout: duration(environment, 'ORDER_GAP_TIMEOUT', '5m', { least: '1s' }),
    },
  };
}

function whole(environment: Environment, variable: string, standard: number, or = ''): number {
  const value = optional(environment, variable);
  if (value === undefined) return standard;
  const number = /^[1-9][0-9]{0,15}$/.test(value) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw bad(variable, value, `a whole number from 1${or}`);
  return number;
}
