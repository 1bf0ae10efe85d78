/**
 * Many keys at once beside one key alone: each key has as many messages, arriving in the same manner, and as many
 * deliveries in flight. All in one process, as a subscriber has it.
 */
import { median } from '../median.ts';
import { type Cost, costOf } from './cases.ts';
import type { Counted } from './counted.ts';
import { all, consumerOn, deliverAll, shuffled } from './streams.ts';

export type Keys = Readonly<{ keys: number; messages: number; window: number; outstanding: number }>;

export type BesideOne = Readonly<{
  one: Cost;
  many: Cost;
  /** From the beginning of all until a key's last message, in milliseconds. */
  medianMs: number;
  slowestMs: number;
}>;

/** Of one key alone so many runs, one after the other: a single run is too short to say much. */
const RUNS_OF_ONE = 4;

export async function manyKeys(counted: Counted, { keys, ...each }: Keys): Promise<BesideOne> {
  const { cost: one } = await delivered(counted, RUNS_OF_ONE, each, false);
  const { cost: many, waits } = await delivered(counted, keys, each, true);
  return { one, many, medianMs: median(waits), slowestMs: Math.max(...waits) };
}

async function delivered(
  { firestore, take }: Counted,
  keys: number,
  { messages, window, outstanding }: Omit<Keys, 'keys'>,
  atOnce: boolean,
): Promise<Readonly<{ cost: Cost; waits: readonly number[] }>> {
  const consumer = consumerOn(firestore);
  const streams = Array.from({ length: keys }, () => consumer.stream());
  const order = shuffled(messages, window);
  await take();
  const begun = performance.now();
  const waits: number[] = [];
  const run = async (stream: (typeof streams)[number]): Promise<void> => {
    await deliverAll(stream, order, outstanding);
    waits.push(performance.now() - begun);
  };
  if (atOnce) await all(streams.map(run));
  else for (const stream of streams) await run(stream);
  const elapsedMs = performance.now() - begun;
  const { operations } = await take();
  const deliveries = streams.reduce((sum, stream) => sum + stream.deliveries(), 0);
  return { cost: costOf(operations, keys * messages, deliveries, elapsedMs), waits };
}
