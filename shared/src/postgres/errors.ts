/**
 * What Postgres and its connections answer, in one table, by SQLSTATE
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 *
 * `STORE_UNAVAILABLE` says that nothing is known: the statement may have been applied, or may be yet. Every other error is
 * definite: the statement, and its transaction, changed nothing.
 */
import { ConfigError, PermanentError, storeUnavailable, textOf, TransientError } from '../errors.ts';

type Verdict = 'unknown' | 'contention' | 'denied' | 'missing' | 'refused' | 'other';

/** By the whole code first, then by its class. */
const VERDICTS: Readonly<Record<string, Verdict>> = {
  // Connection exceptions, and a server that runs out of memory, connections or disk.
  '08': 'unknown',
  '53': 'unknown',
  // A disk that fails, or a cluster that is not as it should be.
  '58': 'unknown',
  XX: 'unknown',
  // The server ends, has crashed, or is starting: a commit may have been applied before the message was sent.
  '57P01': 'unknown',
  '57P02': 'unknown',
  '57P03': 'unknown',
  // A limit in time of the statement, or of an idle transaction: rolled back.
  '57014': 'contention',
  '25P03': 'contention',
  // Serialization failures, deadlocks, a lock that is not to be had in time: another try may go through.
  '40': 'contention',
  '55P03': 'contention',
  // A standby takes no writes: an address that points to the wrong server, or a failover in progress.
  '25006': 'unknown',
  '28': 'denied',
  '42501': 'denied',
  // No schema, table, column or function of that name: not migrated.
  '3D000': 'missing',
  '3F000': 'missing',
  '42P01': 'missing',
  '42703': 'missing',
  '42883': 'missing',
  // A value or a constraint says no, and will do so again.
  '22': 'refused',
  '23': 'refused',
};

/** Errors of the library itself stay as they are. */
export function translate(what: string, error: unknown): Error {
  if (error instanceof TransientError || error instanceof PermanentError || error instanceof ConfigError)
    return error;
  const text = `Postgres: ${what}: ${textOf(error)}`;
  const state = sqlState(error);
  // Without a code it is the client's or the network's: "Connection terminated unexpectedly" has none.
  const verdict =
    state === undefined ? 'unknown' : (VERDICTS[state] ?? VERDICTS[state.slice(0, 2)] ?? 'other');
  switch (verdict) {
    case 'unknown':
      return storeUnavailable(text, error);
    case 'contention':
      return new TransientError('TRANSACTION_CONTENTION', text, { cause: error });
    case 'denied':
      return new ConfigError('STORE_DENIED', text, { cause: error });
    case 'missing':
      return new ConfigError('STORE_NOT_MIGRATED', text, { cause: error });
    case 'refused':
      return new PermanentError('STORE_REFUSED', text, { cause: error });
    case 'other':
      return new TransientError('STORE_REFUSED', text, { cause: error });
  }
}

export const isUnknown = (error: unknown): boolean =>
  error instanceof TransientError && error.code === 'STORE_UNAVAILABLE';

function sqlState(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]{4}$/.test(code)
    ? code
    : undefined;
}
