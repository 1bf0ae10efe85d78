/**
 * What Firestore's errors mean for a claim, by their numeric gRPC codes and never by their text.
 *
 * Nothing here is the message's fault, so nothing is permanent: a missing permission would otherwise send every
 * message to the dead letters.
 */
import { storeUnavailable, textOf, TransientError } from '../errors.ts';
import { verdictOf } from '../faults.ts';

/**
 * The write was refused because of the state of the document; the record decides what that means.
 * ABORTED is among them because REST answers 409 for it and for ALREADY_EXISTS alike, and because a lock timeout of
 * the official emulator has this code.
 */
const REFUSALS: ReadonlyMap<number, string> = new Map([
  [5, 'NOT_FOUND: the document that the precondition names is missing'],
  [6, 'ALREADY_EXISTS'],
  [9, 'FAILED_PRECONDITION: another update time'],
  [10, 'ABORTED'],
]);

export const isRefusal = (error: unknown): boolean => REFUSALS.has(codeOf(error) ?? -1);

export function unavailable(error: unknown): TransientError {
  const code = codeOf(error);
  const { text: hint } = verdictOf('firestore', error);
  const name = code === undefined ? 'an error without a code' : `code ${code}`;
  const text = `Firestore answered ${name}${hint === '' ? '' : ` (${hint})`}: ${textOf(error)}`;
  return storeUnavailable(text, error);
}

/**
 * Of the commit of a transaction. Nothing of it was applied where the code says so, as far as the last attempt goes; the
 * handler's writes are in it, so what is wrong with it may be theirs.
 */
const NOT_COMMITTED: ReadonlySet<number> = new Set([3, 5, 6, 9, 11]);
const ABORTED = 10;

export function transactionFailure(error: unknown): TransientError {
  const code = codeOf(error) ?? -1;
  const options = { cause: error };
  if (NOT_COMMITTED.has(code)) {
    const text = `Firestore did not take the commit: ${textOf(error)}`;
    return new TransientError('TRANSACTION_REFUSED', text, options);
  }
  if (code !== ABORTED) return unavailable(error);
  const text = 'other writers were in the way of the transaction each time';
  return new TransientError('TRANSACTION_CONTENTION', text, options);
}

function codeOf(error: unknown): number | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'number' ? code : undefined;
}
