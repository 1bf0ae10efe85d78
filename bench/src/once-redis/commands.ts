/**
 * The two commands of a fresh message as the store sends them, taken from the store itself with a client that records
 * instead of sending: so the raw side sends the same scripts with the same arguments, whatever the store's format is.
 */
import type { Redis } from 'ioredis';
import type { Message } from 'pubsub-guarantees';
import { redisClaims } from 'pubsub-guarantees/dedup/redis';
import { deduplicating, deliverAll } from './messages.ts';

type Arguments = Parameters<Redis['evalsha']>;
export type Commands = Readonly<{ claim: Arguments; complete: Arguments }>;

export async function recordedCommands(messages: readonly Message[]): Promise<readonly Commands[]> {
  const recorded: Arguments[] = [];
  const token = Date.now() * 1_000;
  const recorder = {
    status: 'ready',
    // One lane: claims and completions alternate.
    evalsha: async (...args: Arguments) => (recorded.push(args) % 2 === 1 ? [token] : [1]),
  };
  await deliverAll(deduplicating(redisClaims(recorder as unknown as Redis)), messages, 1, 'handled');
  return messages.map((_, index) => {
    const [claim, complete] = [recorded[index * 2], recorded[index * 2 + 1]];
    if (claim === undefined || complete === undefined) throw new Error('a message without its two commands');
    return { claim, complete };
  });
}

export async function sendRaw(redis: Redis, { claim, complete }: Commands): Promise<void> {
  const [token] = (await redis.evalsha(...claim)) as [unknown];
  const [answer] = (await redis.evalsha(...complete)) as [unknown];
  if (typeof token !== 'number' || answer !== 1)
    throw new Error(`a raw message ended as ${JSON.stringify([token, answer])}`);
}
