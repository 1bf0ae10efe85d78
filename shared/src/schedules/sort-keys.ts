/**
 * How a ledger finds entries again: one sorted text for each question, so that no query needs an index of several
 * fields. Each begins with a hash of whose entry it is; what has ended has none, and what is refused is not swept.
 */
import { hashOf } from '../hash.ts';
import { dueText, dueUntil, LAST, sortedMs } from '../shards.ts';
import { type Entry, isPending, type LedgerTimes, sweepAtMs } from './entry.ts';
import type { ListQuery } from './ledger.ts';

export type SortKeys = Readonly<{ sweep: string | null; byKey: string | null; byDueTime: string | null }>;

/** `from` inclusive, `to` exclusive. */
export type Range = Readonly<{ field: keyof SortKeys; from: string; to: string }>;

const scopeOf = (consumer: string, source: string): string => hashOf(consumer, source);

export function sortKeys(id: string, entry: Entry, times: LedgerTimes, shards: number): SortKeys {
  const { consumer, source, key } = entry.ref;
  const sweepMs = sweepAtMs(entry, times);
  // What still has its message: all that is pending, and what the queue has refused.
  const isThere = isPending(entry) || entry.delayed !== undefined;
  const listed = key === undefined || !isThere ? undefined : scopeOf(consumer, source);
  return {
    sweep: sweepMs === undefined ? null : dueText(id, consumer, sweepMs, shards),
    byKey: listed === undefined ? null : `${listed}/${key}`,
    byDueTime: listed === undefined ? null : `${listed}/${sortedMs(entry.dueTimeMs ?? 0)}/${id}`,
  };
}

export const dueRange = (consumer: string, shard: number, nowMs: number): Range => ({
  field: 'sweep',
  ...dueUntil(consumer, shard, nowMs),
});

/** Everything that is due at some time: all that is pending. */
export const pendingRange = (consumer: string): Range => ({
  field: 'sweep',
  from: `${hashOf(consumer)}/`,
  to: `${hashOf(consumer)}/${LAST}`,
});

export function listRange({ consumer, source, prefix, beforeMs }: ListQuery): Range {
  const base = scopeOf(consumer, source);
  if (prefix === '' && beforeMs !== undefined) {
    return { field: 'byDueTime', from: `${base}/`, to: `${base}/${sortedMs(beforeMs)}` };
  }
  return { field: 'byKey', from: `${base}/${prefix}`, to: `${base}/${prefix}${LAST}` };
}

/** What the range alone does not say. */
export const isListed = (entry: Entry, { beforeMs }: ListQuery): boolean =>
  beforeMs === undefined || (entry.dueTimeMs ?? 0) < beforeMs;
