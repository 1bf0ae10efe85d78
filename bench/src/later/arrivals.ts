/** What arrives at a subscription, each message once, within a limit of time. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Message, Subscription } from '@google-cloud/pubsub';

const LIMIT_MS = 60_000;

export type Arrival = Readonly<{ message: Message; at: number }>;

/** The first arrival of each; a second one, and one that does not come, ends the run with an error. */
export async function arrivals(
  subscription: Subscription,
  round: string,
  count: number,
): Promise<readonly Arrival[]> {
  const arrived: Arrival[] = [];
  const done = Promise.withResolvers<void>();
  const take = (message: Message): void => {
    const at = Date.now();
    message.ack();
    if (message.attributes['round'] !== round) return;
    arrived.push({ message, at });
    if (arrived.length === count) done.resolve();
  };
  subscription.on('message', take);
  await withinLimit(done.promise, () => `${arrived.length} of ${count} messages`);
  subscription.off('message', take);
  const distinct = new Set(arrived.map(({ message }) => message.attributes['dedupId']));
  if (distinct.size !== count) throw new Error(`${count} arrivals are of ${distinct.size} messages`);
  return arrived;
}

/** Rejects, saying how far it got, after a minute. */
export async function withinLimit(all: Promise<void>, soFar: () => string): Promise<void> {
  const over = new AbortController();
  const late = wait(LIMIT_MS, undefined, { signal: over.signal }).then(() => {
    throw new Error(`after ${LIMIT_MS / 1_000} s: ${soFar()}`);
  });
  // Also when it is called off.
  late.catch(() => undefined);
  try {
    await Promise.race([all, late]);
  } finally {
    over.abort();
  }
}
