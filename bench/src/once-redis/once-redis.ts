/**
 * Once, over Redis: the whole middleware beside its two commands sent raw, and beside message-queue-toolkit's store
 * and lock; what a remembered message keeps of the server's memory; a burst of duplicates.
 */
import { Redis } from 'ioredis';
import { redisClaims } from 'pubsub-guarantees/dedup/redis';
import { startRedis } from '../servers/redis.ts';
import { keptBytes } from './memory.ts';
import { deduplicating, deliverAll, freshMessages, LANES } from './messages.ts';
import { speed } from './speed.ts';

type Print = (line: string) => void;

const KEYS = [100_000, 135_000];
const DUPLICATES = 300;

export async function onceRedis(print: Print): Promise<object> {
  const server = await startRedis(print);
  if (server === undefined) return { skipped: 'redis-server' };
  const redis = new Redis(server.port, '127.0.0.1', { enableAutoPipelining: true });
  try {
    const measured = await speed(server.port, redis, print);
    const duplicates = await burst(redis, print);
    const memory = [];
    for (const keys of KEYS) {
      const kept = await keptBytes(redis, keys);
      memory.push(kept);
      print(
        `${keys} keys: ${kept.recordBytes} bytes a record, ${kept.bareBytes} a bare key, ${kept.over} over (at most 60)`,
      );
    }
    return { ...measured, duplicates, memory };
  } finally {
    redis.disconnect();
    await server.close();
  }
}

/** Duplicates of done messages, all at once. */
async function burst(redis: Redis, print: Print): Promise<object> {
  const handler = deduplicating(redisClaims(redis));
  const messages = freshMessages(DUPLICATES);
  await deliverAll(handler, messages, LANES, 'handled');
  const begun = performance.now();
  await deliverAll(handler, messages, DUPLICATES, 'duplicate');
  const ms = Number((performance.now() - begun).toFixed(1));
  print(
    `${DUPLICATES} duplicates of done messages at once: ${DUPLICATES} acks, no run, ${ms} ms (at most 1,000)`,
  );
  return { count: DUPLICATES, ms };
}
