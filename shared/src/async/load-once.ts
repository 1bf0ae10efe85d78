/**
 * Something that is loaded when it is first asked for. Concurrent first calls load it once; a load that fails rejects
 * the calls that wait for it, and the next call tries again.
 */
export function loadOnce<Value>(load: () => Promise<Value>): () => Promise<Value> {
  let loading: Promise<Value> | undefined;
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}
