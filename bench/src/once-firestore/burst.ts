/** Duplicates of messages that are done, hundreds at once, as a subscription may bring them long after a good ack. */
import { randomUUID } from 'node:crypto';
import { median } from '../median.ts';
import { type Delivery, messageOf, type Way } from './ways.ts';

export type Burst = Readonly<{ ids: number; firstMs: number; medianMs: number; fastestMs: number }>;

export const DUPLICATES = 300;
const BURSTS = 9;

/** `logged` counts lines of the log: an error, a retry or a wait would be one. Throws when a duplicate is not acked. */
export async function burst(way: Way, ids: number, logged: () => number): Promise<Burst> {
  const done = Array.from({ length: ids }, () => randomUUID());
  for (const id of done) await way(messageOf(id));
  const times: number[] = [];
  for (let count = 0; count < BURSTS; count += 1) {
    const begun = performance.now();
    await once(way, done);
    times.push(Math.round(performance.now() - begun));
  }
  if (logged() > 0) throw new Error(`${logged()} lines were logged: something was contended or failed`);
  const [firstMs = Number.NaN] = times;
  return { ids, firstMs, medianMs: median(times), fastestMs: Math.min(...times) };
}

/** Rejects when one of the deliveries is not acknowledged as a duplicate without a run. */
export async function once(way: Way, done: readonly string[]): Promise<void> {
  const deliveries = Array.from({ length: DUPLICATES }, (_, index) =>
    way(messageOf(done[index % done.length] ?? '')),
  );
  for (const { isDuplicate, beforeMs } of await Promise.all<Delivery>(deliveries)) {
    if (!isDuplicate || beforeMs !== undefined) throw new Error('a message that was done ran again');
  }
}
