/**
 * What a remembered message costs in Redis beyond the least that could remember it: a key of 22 bytes with a value of
 * one byte and an expiry. Both are filled in turn on one emptied server; `used_memory` is what counts.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { redisClaims } from 'pubsub-guarantees/dedup/redis';
import { deduplicating, deliverAll, freshMessages, inLanes } from './messages.ts';

export type Kept = Readonly<{ keys: number; recordBytes: number; bareBytes: number; over: number }>;

const LANES = 256;
/** As long as the records live. */
const EXPIRY_SECONDS = 8 * 86_400;
/** The hash table grows step by step; used memory is steady when it has. */
const [STEADY_MS, STEADY_LIMIT] = [250, 80];

export async function keptBytes(redis: Redis, keys: number): Promise<Kept> {
  const bareBytes = await filled(redis, keys, () => {
    const numbers = Array.from({ length: keys }, (_, index) => index + 1);
    return inLanes(numbers, LANES, () => async (number) => {
      await redis.set(String(number).padStart(22, 'k'), '1', 'EX', EXPIRY_SECONDS);
    });
  });
  const recordBytes = await filled(redis, keys, () =>
    deliverAll(deduplicating(redisClaims(redis)), freshMessages(keys), LANES, 'handled'),
  );
  return { keys, recordBytes, bareBytes, over: Number((recordBytes - bareBytes).toFixed(1)) };
}

/** Bytes per key that `fill` adds to an empty server. */
async function filled(redis: Redis, keys: number, fill: () => Promise<void>): Promise<number> {
  await redis.flushall();
  const before = await steady(redis);
  await fill();
  const after = await steady(redis);
  if ((await redis.dbsize()) !== keys) throw new Error(`${await redis.dbsize()} keys instead of ${keys}`);
  return Number(((after - before) / keys).toFixed(1));
}

/** Within 20 s: used memory once two looks in a row agree to a kilobyte. */
async function steady(redis: Redis): Promise<number> {
  let last = Number.NaN;
  for (let look = 0; look < STEADY_LIMIT; look += 1) {
    const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
    if (Math.abs(used - last) < 1_024) return used;
    last = used;
    await wait(STEADY_MS);
  }
  throw new Error('used_memory does not become steady');
}
