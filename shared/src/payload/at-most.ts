/** Work on many things, a bounded number of them at a time. The first failure ends it, once what runs has settled. */
export async function forEachAtMost<Item>(
  limit: number,
  items: readonly Item[],
  work: (item: Item, index: number) => Promise<void>,
): Promise<void> {
  const entries = items.entries();
  let failure: Readonly<{ error: unknown }> | undefined;
  const worker = async (): Promise<void> => {
    for (const [index, item] of entries) {
      if (failure !== undefined) return;
      try {
        await work(item, index);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  if (failure !== undefined) throw failure.error;
}
