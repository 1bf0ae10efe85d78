/**
 * Concurrent calls for one key share a request: at most one is out for each key, and whoever comes meanwhile joins the
 * next. A request that fails fails all that share it; each of them is a delivery that comes again.
 */

type Waiting<Item, Result> = Readonly<{
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}>;

/** `weight` of the items of one request together stays at most `limit`; a heavier item goes alone. */
export function coalesced<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  weight: (item: Item) => number,
  limit: number,
): (key: string, item: Item) => Promise<Result> {
  const queues = new Map<string, Waiting<Item, Result>[]>();

  /** The first of the queue that fit into one request. */
  const taken = (queue: Waiting<Item, Result>[]): readonly Waiting<Item, Result>[] => {
    let total = 0;
    const end = queue.findIndex(({ item }) => (total += weight(item)) > limit);
    return queue.splice(0, end === -1 ? queue.length : Math.max(end, 1));
  };

  const drain = async (key: string, queue: Waiting<Item, Result>[]): Promise<void> => {
    // What arrives in the same turn of the event loop goes together.
    await Promise.resolve();
    while (queue.length > 0) {
      const batch = taken(queue);
      try {
        const results = await run(batch.map(({ item }) => item));
        for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    queues.delete(key);
  };

  return (key, item) =>
    new Promise((resolve, reject) => {
      const known = queues.get(key);
      const queue = known ?? [];
      queue.push({ item, resolve, reject });
      if (known !== undefined) return;
      queues.set(key, queue);
      void drain(key, queue);
    });
}
