/**
 * What Firestore's errors mean, by their numeric gRPC codes and never by their text, which differs between the service
 * and the emulators: https://cloud.google.com/firestore/docs/reference/rpc/google.rpc#code
 *
 * Nothing here is the message's fault, so nothing is permanent: a missing permission would otherwise send every
 * message to the dead letters.
 */
import { storeUnavailable, textOf, TransientError } from '../errors.ts';
import { verdictOf } from '../faults.ts';

const CODE = {
  invalidArgument: 3,
  notFound: 5,
  alreadyExists: 6,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
} as const;

/**
 * Whether a write was refused because the document is not as the caller thought: it exists, has another update time, or
 * is gone.
 */
export function isRefused(error: unknown): boolean {
  const code = codeOf(error);
  return code === CODE.alreadyExists || code === CODE.failedPrecondition || code === CODE.notFound;
}

/** Whether other transactions won each time: the last attempt, at least, was not applied. */
export const isContention = (error: unknown): boolean => codeOf(error) === CODE.aborted;

/**
 * Whether a write alone, without a transaction, was refused: ABORTED is among the codes because REST answers 409 for it
 * and for ALREADY_EXISTS alike, and because a lock that the official emulator does not get has this code.
 */
export const isWriteRefused = (error: unknown): boolean => isRefused(error) || isContention(error);

/** `STORE_UNAVAILABLE` with the server's error as its cause. `name` says what was called. */
export function unavailable(error: unknown, name = 'a call'): TransientError {
  const code = codeOf(error);
  const { text: hint } = verdictOf('firestore', error);
  const shown = code === undefined ? '' : ` with code ${code}`;
  const text = `Firestore: ${name} failed${shown}${hint === '' ? '' : ` (${hint})`}: ${textOf(error)}`;
  return storeUnavailable(text, error);
}

/**
 * Of the commit of a transaction. Nothing of it was applied where the code says so, as far as the last attempt goes; the
 * handler's writes are in it, so what is wrong with it may be theirs.
 */
const NOT_COMMITTED: ReadonlySet<unknown> = new Set([
  CODE.invalidArgument,
  CODE.notFound,
  CODE.alreadyExists,
  CODE.failedPrecondition,
  CODE.outOfRange,
]);

/** A transaction's failure that is not the caller's own: refused, in others' way, or of unknown outcome. */
export function transactionFailure(error: unknown): TransientError {
  const options = { cause: error };
  if (NOT_COMMITTED.has(codeOf(error))) {
    const text = `Firestore did not take the commit: ${textOf(error)}`;
    return new TransientError('TRANSACTION_REFUSED', text, options);
  }
  if (!isContention(error)) return unavailable(error, 'the transaction');
  const text = 'other writers were in the way of the transaction each time';
  return new TransientError('TRANSACTION_CONTENTION', text, options);
}

/** Of the server's error, or of what `unavailable` has made of it. */
function codeOf(error: unknown): number | undefined {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code: unknown = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return typeof code === 'number' ? code : undefined;
}
