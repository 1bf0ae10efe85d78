/**
 * How many ranges of the index hold what is pending. The time in an index grows, and Firestore splits such a range
 * only gradually beyond 500 writes a second (https://cloud.google.com/firestore/docs/best-practices#hotspots); in
 * sixteen ranges that is 8,000. Sweeps ask each of them.
 */
import { hashOf } from './hash.ts';
import { type Check, whole } from './options.ts';

export const SHARDS = 16;
const MOST_SHARDS = 256;

/** The same name always has the same shard: rows of a stream are together, streams spread out. */
export const shardOf = (name: string, shards: number): number =>
  Buffer.from(hashOf('shard', name), 'base64url').readUInt32BE(0) % shards;

/** How many: 1 to 256. */
export const someShards: Check = whole(1, MOST_SHARDS);

const SHARD_DIGITS = 3;
/** Enough for any date: fewer digits would sort a longer number first. */
const DIGITS = 16;
/** Comes after every text that begins with the one before it. */
export const LAST = '\u{10ffff}';

/** As text that sorts as the number does. */
export const sortedMs = (milliseconds: number): string =>
  String(Math.max(0, Math.ceil(milliseconds))).padStart(DIGITS, '0');

const dueBase = (consumer: string, shard: number): string =>
  `${hashOf(consumer)}/${String(shard).padStart(SHARD_DIGITS, '0')}/`;

/** The place of `id` in the index of what is due: by its consumer, its shard, and its time. */
export const dueText = (id: string, consumer: string, atMs: number, shards: number): string =>
  `${dueBase(consumer, shardOf(id, shards))}${sortedMs(atMs)}/${id}`;

/** The time of a `dueText`. */
export const dueMsOf = (text: string): number => Number(text.split('/')[2]);

/** What of one shard is due until then; `from` inclusive, `to` exclusive. */
export function dueUntil(
  consumer: string,
  shard: number,
  untilMs: number,
): Readonly<{ from: string; to: string }> {
  const from = dueBase(consumer, shard);
  return { from, to: `${from}${sortedMs(Math.floor(untilMs))}${LAST}` };
}
