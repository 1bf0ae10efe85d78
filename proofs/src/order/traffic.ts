/**
 * What the publishers of a simulation send: numbers in any order, twice, under one number with two contents, from a
 * counter that was reset, and some that are never published although their number was taken.
 */
import type { Message } from '../../../shared/src/message.ts';
import type { Random } from '../engine/random.ts';

export type Sent = Readonly<{
  id: string;
  key: string;
  number: number;
  content: string;
  epoch: string | undefined;
}>;

type Fate = 'permanent' | 'retry' | 'kills';

export type Traffic = Readonly<{
  sent: readonly Sent[];
  /** Numbers that only an outbox has, or that are nowhere. */
  dropped: readonly Sent[];
  /** How often this content still fails before it succeeds. */
  failuresLeft: Map<string, number>;
  /** Contents that fail for ever: with a dead letter, as often as they are tried, or with their process. */
  fatal: Map<string, Fate>;
}>;

export type TrafficPlan = Readonly<{
  keys: number;
  numbers: number;
  /** Shares of numbers. */
  duplicates: number;
  conflicts: number;
  failing: number;
  fatal: number;
  dropped: number;
  /** Share of keys whose counter begins again at 1 under another epoch. */
  resets: number;
}>;

export const keysOf = (plan: Pick<TrafficPlan, 'keys'>): readonly string[] =>
  Array.from({ length: plan.keys }, (_, index) => `key${index + 1}`);

export function traffic(plan: TrafficPlan, random: Random): Traffic {
  const sent: Sent[] = [];
  const dropped: Sent[] = [];
  const failuresLeft = new Map<string, number>();
  const fatal = new Map<string, Fate>();
  for (const key of keysOf(plan)) {
    const resets = random.chance(plan.resets);
    for (const epoch of resets ? ['a', 'b'] : [undefined]) {
      for (let number = 1; number <= plan.numbers; number += 1) {
        const name = `${key}#${number}`;
        const tag = epoch === undefined ? '' : `#${epoch}`;
        const one = (content: string): Sent => {
          return { id: `m${sent.length + dropped.length}`, key, number, content, epoch };
        };
        if (random.chance(plan.dropped)) {
          dropped.push(one(`${name}${tag}`));
          continue;
        }
        sent.push(one(`${name}${tag}`));
        while (random.chance(plan.duplicates)) sent.push(one(`${name}${tag}`));
        if (random.chance(plan.conflicts)) sent.push(one(`${name}#other${tag}`));
        if (random.chance(plan.failing)) failuresLeft.set(`${name}${tag}`, 1 + random.upTo(5));
        if (random.chance(plan.fatal))
          fatal.set(`${name}${tag}`, random.pick<Fate>(['permanent', 'retry', 'kills']));
      }
    }
  }
  return { sent, dropped, failuresLeft, fatal };
}

export const messageOf = (sent: Sent): Message => ({
  id: sent.id,
  data: Buffer.from(sent.content),
  attributes: {
    // Each time that it is published.
    dedupId: sent.content,
    sequence: String(sent.number),
    sequenceKey: sent.key,
    ...(sent.epoch !== undefined && { sequenceEpoch: sent.epoch }),
  },
  publishTime: new Date(0),
});
