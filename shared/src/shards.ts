/**
 * In how many ranges of the index what is pending stands. The time in an index grows, and Firestore splits such a range
 * only gradually beyond 500 writes a second (https://cloud.google.com/firestore/docs/best-practices#hotspots); in
 * sixteen ranges that is 8,000. Sweeps ask each of them.
 */
import { hashOf } from './hash.ts';
import { type Check, whole } from './options.ts';

export const SHARDS = 16;
const MOST_SHARDS = 256;

/** The same name always has the same shard: rows of a stream stand together, streams spread out. */
export const shardOf = (name: string, shards: number): number =>
  Buffer.from(hashOf('shard', name), 'base64url').readUInt32BE(0) % shards;

/** How many: 1 to 256. */
export const someShards: Check = whole(1, MOST_SHARDS);
