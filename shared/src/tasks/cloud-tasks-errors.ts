/**
 * What a refusal of Cloud Tasks means for the message: a dead letter, or another try by the next delivery or within
 * this one.
 */
import { PermanentError, textOf, TransientError } from '../errors.ts';
import { statusOf, verdictOf } from '../faults.ts';

/** https://grpc.io/docs/guides/status-codes/ */
const ALREADY_EXISTS = 6;

export const isAlreadyThere = (error: unknown): boolean => statusOf(error) === ALREADY_EXISTS;

/** Over a rate or quota, or not reachable: refused for the moment, whether or not it was stored. */
const MOMENTARY: ReadonlySet<number> = new Set([8, 14]);

export const isMomentary = (error: unknown): boolean => MOMENTARY.has(statusOf(error));

/**
 * What a refusal means for the message. A status that is not in the table is transient: no message is dead-lettered by
 * mistake.
 */
export function translate(error: unknown, queue: string): PermanentError | TransientError {
  if (error instanceof TransientError) return error;
  const { fault, code, text: what } = verdictOf('cloudTasks', error);
  const text = `${queue} ${what}: ${textOf(error)}`;
  return fault === 'message'
    ? new PermanentError(code, text, { cause: error })
    : new TransientError(code, text, { cause: error });
}
