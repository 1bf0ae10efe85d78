/** One key's messages in different manners of arrival, and what each costs. */
import { type Operations, total } from './billed.ts';
import type { Counted } from './counted.ts';
import { consumerOn, deliverAll, shuffled } from './streams.ts';

export type Case = Readonly<{
  name: string;
  messages: number;
  /** How many places late a message may come (0: all in turn). */
  window: number;
  /** Deliveries in flight at a time. */
  outstanding: number;
}>;

export type Cost = Readonly<{
  operations: number;
  reads: number;
  writes: number;
  deletes: number;
  deliveries: number;
  perSecond: number;
}>;

/** Per message. */
export async function cost(
  { firestore, take }: Counted,
  { messages, window, outstanding }: Case,
): Promise<Cost> {
  const stream = consumerOn(firestore).stream();
  await take();
  const begun = performance.now();
  await deliverAll(stream, shuffled(messages, window), outstanding);
  const elapsedMs = performance.now() - begun;
  const { operations } = await take();
  return costOf(operations, messages, stream.deliveries(), elapsedMs);
}

export function costOf(
  operations: Operations,
  messages: number,
  deliveries: number,
  elapsedMs: number,
): Cost {
  const each = (count: number): number => Number((count / messages).toFixed(3));
  return {
    operations: each(total(operations)),
    reads: each(operations.reads),
    writes: each(operations.writes),
    deletes: each(operations.deletes),
    deliveries: each(deliveries),
    perSecond: Math.round((messages / elapsedMs) * 1_000),
  };
}

export const HEADINGS = `${'operations a message'.padEnd(34)}   all = reads + writes + deletes  messages  messages/s`;

export function shown(name: string, messages: number, of: Cost): string {
  const figures = [of.operations, of.reads, of.writes, of.deletes].map((each) => each.toFixed(2).padStart(5));
  const [all, reads, writes, deletes] = figures;
  const counts = `${String(messages).padStart(10)}${String(of.perSecond).padStart(12)}`;
  return `${name.padEnd(34)} ${all} = ${reads} + ${writes}  + ${deletes}  ${counts}`;
}
