/**
 * Work on many things, a bounded number of them at a time.
 */

/**
 * Gives each item to `work`, at most `limit` at once and in their order, until there are none or `isOver`: a slow item
 * keeps one place only. The first failure, of `work` or of the items themselves, ends it: no other item is begun, and
 * it rejects once everything that runs has settled.
 */
export async function forEachAtMost<Item>(
  limit: number,
  items: Iterable<Item> | AsyncIterable<Item>,
  work: (item: Item, index: number) => Promise<unknown>,
  isOver: () => boolean = () => false,
): Promise<void> {
  const iterator = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  let index = 0;
  let isAtEnd = false;
  let failure: Readonly<{ error: unknown }> | undefined;
  const worker = async (): Promise<void> => {
    while (!isAtEnd && failure === undefined && !isOver()) {
      const next = await iterator.next();
      if (next.done === true) isAtEnd = true;
      if (next.done === true || failure !== undefined) return;
      await work(next.value, index++);
    }
  };
  const safely = async (): Promise<void> => {
    try {
      await worker();
    } catch (error) {
      failure ??= { error };
    }
  };
  await Promise.all(Array.from({ length: limit }, safely));
  if (failure !== undefined) throw failure.error;
}
