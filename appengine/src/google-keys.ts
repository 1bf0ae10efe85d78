/**
 * Google's keys, kept in the process. New keys take the place of the kept ones only once they have been read: an
 * address that does not answer makes no token that was good a bad one.
 *
 * One reading is in flight at a time, and all tokens that need it share it. A failed reading is not repeated for each
 * request: the next one starts after a pause, doubled with each failure. Keys that are older than their reply allowed
 * count for a day more while no others can be read; after that tasks are answered 503 and stay in their queue.
 */
import { type Certificates, OAuth2Client } from 'google-auth-library';

/** The keys by key ID, as PEM, and for how long their reply allows to keep them. */
type KeyReading = Readonly<{ certificates: Certificates; maxAgeMs: number }>;

/** One reading. Rejects where the keys cannot be had. */
export type KeyReader = () => Promise<KeyReading>;

/** The keys to judge a token of this key by. Rejects where they cannot be had and the key is not known. */
export type KeySource = (keyId: string) => Promise<Certificates>;

const READ_TIMEOUT_MS = 10_000;
/** Any caller can send a token of an unknown key: such tokens cause at most one reading a minute. */
const REREAD_MS = 60_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** Long enough for an outage; a key that Google withdrew must not count for good. */
const STALE_MS = 86_400_000;

/** Reads Google's own keys. `address` is for tests; default: Google's. */
export function googleKeys(address?: string): KeyReader {
  return async () => {
    // A client keeps what it has read, and reads anew for each call once that has run out: one client for each reading.
    const client = new OAuth2Client({
      // The client repeats a request that failed: the bound is on all of them together.
      transporterOptions: { signal: AbortSignal.timeout(READ_TIMEOUT_MS) },
      ...(address !== undefined && { endpoints: { oauth2FederatedSignonPemCertsUrl: address } }),
    });
    const { certs, res } = await client.getFederatedSignonCertsAsync();
    const maxAge = /max-age=(\d{1,9})/.exec(res?.headers.get('cache-control') ?? '')?.[1];
    return { certificates: certs, maxAgeMs: Number(maxAge ?? 0) * 1_000 };
  };
}

type Kept = Readonly<{ certificates: Certificates; readAt: number; freshUntil: number }>;

/** `monotonic` is in milliseconds. */
export function keptKeys(read: KeyReader, monotonic: () => number): KeySource {
  let kept: Kept | undefined;
  let reading: Promise<Kept> | undefined;
  let failures = 0;
  let pausedUntil = -Infinity;

  const readOnce = async (): Promise<Kept> => {
    try {
      const { certificates, maxAgeMs } = await read();
      const readAt = monotonic();
      failures = 0;
      kept = { certificates, readAt, freshUntil: readAt + maxAgeMs };
      return kept;
    } catch (error) {
      pausedUntil = monotonic() + Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS);
      failures += 1;
      throw error;
    } finally {
      reading = undefined;
    }
  };
  const refreshed = (): Promise<Kept> => {
    if (reading !== undefined) return reading;
    if (monotonic() < pausedUntil) return Promise.reject(new Error('the last reading failed a moment ago'));
    reading = readOnce();
    return reading;
  };
  return async (keyId) => {
    const now = monotonic();
    if (kept === undefined || now >= kept.freshUntil + STALE_MS) return (await refreshed()).certificates;
    const { certificates, readAt, freshUntil } = kept;
    if (!Object.hasOwn(certificates, keyId)) {
      // A key that Google began to use after the others were read is read when its first token comes.
      return now - readAt < REREAD_MS && failures === 0 ? certificates : (await refreshed()).certificates;
    }
    if (now < freshUntil) return certificates;
    return refreshed().then(
      (fresh) => fresh.certificates,
      () => certificates,
    );
  };
}
