/** What is pending and due in all shards, at most `limit` of each, each shard longest due first. */
import type { PendingRow, RelayStore } from '../../../shared/src/outbox/outbox-store.ts';

export async function pendingOf(
  store: RelayStore,
  fromMs = 0,
  limit = 1_000,
): Promise<readonly PendingRow[]> {
  const shards = Array.from({ length: store.shards }, (_, shard) =>
    store.pending(shard, fromMs, undefined, limit),
  );
  return (await Promise.all(shards)).flatMap(({ rows }) => rows);
}
