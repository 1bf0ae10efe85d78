/**
 * A payload store whose client is loaded by the first call: only a message that does not fit a task needs it.
 * Concurrent first calls load it once; a load that fails rejects the call, and the next call tries again.
 */
import { loadOnce } from '../async/load-once.ts';
import type { PayloadStore } from './payload-store.ts';
import { callable } from '../options.ts';

/**
 * Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * const store = lazyPayloads(async () => firestorePayloads(new Firestore()));
 */
export function lazyPayloads(load: () => Promise<PayloadStore>): PayloadStore {
  callable('load', load);
  const loaded = loadOnce(load);
  return {
    put: async (owner, content, neededAtMs) => (await loaded()).put(owner, content, neededAtMs),
    get: async (ref) => (await loaded()).get(ref),
    done: async (ref) => (await loaded()).done(ref),
    sweep: async (context) => (await loaded()).sweep(context),
  };
}
