/**
 * Work on one key goes one after the other in a process. Transactions of one process on one document gain nothing by
 * meeting at the server: one waits for the other's lock or is aborted by it, and two that have both read the document and
 * want to write it wait until a lock times out (two seconds on Google's emulator).
 *
 * It is a courtesy, not a lock: other processes are not in it, and nothing is decided by it. What waits here has not
 * been sent; a crash leaves nothing behind.
 */

/** Runs `work` once everything that came before it for this key has settled, however it did. */
export function oneByOne(): <Result>(key: string, work: () => Promise<Result>) => Promise<Result> {
  const latest = new Map<string, Promise<void>>();
  return async (key, work) => {
    const before = latest.get(key);
    const { promise, resolve } = Promise.withResolvers<void>();
    latest.set(key, promise);
    await before;
    try {
      return await work();
    } finally {
      if (latest.get(key) === promise) latest.delete(key);
      resolve();
    }
  };
}
