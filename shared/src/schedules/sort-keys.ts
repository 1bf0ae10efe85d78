/**
 * How a ledger finds entries again: one sorted text for each question, so that no query needs an index of several
 * fields. Each begins with a hash of whose entry it is; what has ended has none, and what is refused is not swept.
 */
import { hashOf } from '../hash.ts';
import { shardOf } from '../shards.ts';
import { type Entry, isPending, type LedgerTimes, sweepAtMs } from './entry.ts';
import type { ListQuery } from './ledger.ts';

export type SortKeys = Readonly<{ sweep: string | null; byKey: string | null; byInstant: string | null }>;

/** `from` inclusive, `to` exclusive. */
export type Range = Readonly<{ field: keyof SortKeys; from: string; to: string }>;

/** Enough for any date: fewer digits would sort a longer number first. */
const DIGITS = 16;
const SHARD_DIGITS = 3;
/** Comes after every text that begins with the one before it. */
const LAST = '\u{10ffff}';

const padded = (milliseconds: number): string =>
  String(Math.max(0, Math.ceil(milliseconds))).padStart(DIGITS, '0');
const scopeOf = (consumer: string, source: string): string => hashOf(consumer, source);

export function sortKeys(id: string, entry: Entry, times: LedgerTimes, shards: number): SortKeys {
  const { consumer, source, key } = entry.ref;
  const sweepMs = sweepAtMs(entry, times);
  // What still has its message: all that is pending, and what the queue has refused.
  const isThere = isPending(entry) || entry.delayed !== undefined;
  const listed = key === undefined || !isThere ? undefined : scopeOf(consumer, source);
  return {
    sweep: sweepMs === undefined ? null : sweepKey(id, consumer, sweepMs, shards),
    byKey: listed === undefined ? null : `${listed}/${key}`,
    byInstant: listed === undefined ? null : `${listed}/${padded(entry.instantMs ?? 0)}/${id}`,
  };
}

/**
 * In the shard of its ID: entries of one consumer whose times grow have as many ranges of the index as there are shards.
 * https://cloud.google.com/firestore/docs/best-practices#hotspots
 */
export const sweepKey = (id: string, consumer: string, sweepMs: number, shards: number): string =>
  `${shardBase(consumer, shardOf(id, shards))}${padded(sweepMs)}/${id}`;

/** When the entry of a `sweep` text is due. */
export const dueMsOf = (text: string): number => Number(text.split('/')[2]);

const shardBase = (consumer: string, shard: number): string =>
  `${hashOf(consumer)}/${String(shard).padStart(SHARD_DIGITS, '0')}/`;

export function dueRange(consumer: string, shard: number, nowMs: number): Range {
  const base = shardBase(consumer, shard);
  return { field: 'sweep', from: base, to: `${base}${padded(Math.floor(nowMs))}${LAST}` };
}

/** Everything that is due at some time: all that is pending. */
export const pendingRange = (consumer: string): Range => ({
  field: 'sweep',
  from: `${hashOf(consumer)}/`,
  to: `${hashOf(consumer)}/${LAST}`,
});

export function listRange({ consumer, source, prefix, beforeMs }: ListQuery): Range {
  const base = scopeOf(consumer, source);
  if (prefix === '' && beforeMs !== undefined) {
    return { field: 'byInstant', from: `${base}/`, to: `${base}/${padded(beforeMs)}` };
  }
  return { field: 'byKey', from: `${base}/${prefix}`, to: `${base}/${prefix}${LAST}` };
}

/** What the range alone does not say. */
export const isListed = (entry: Entry, { beforeMs }: ListQuery): boolean =>
  beforeMs === undefined || (entry.instantMs ?? 0) < beforeMs;
