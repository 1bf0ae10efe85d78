/**
 * Message IDs: 19-digit decimal numbers that rise with every publish and do not come again after a restart,
 * because a store that outlives the server may remember them as handled.
 *
 * They start at the second of the start, with nine digits of chance below it: a clock that stands at the same
 * time in every run must not bring back the same numbers.
 */
import { randomInt } from 'node:crypto';
import type { Clock } from '../clock.ts';

export type MessageIds = Readonly<{
  next(): string;
  /** The one that `next` would return. */
  upcoming(): string;
  /** Those before this one do not come any more. */
  startAt(id: string): void;
}>;

export function messageIds(clock: Clock): MessageIds {
  const second = BigInt(Math.floor(clock.now() / 1000));
  let next = second * 1_000_000_000n + BigInt(randomInt(1_000_000_000));
  return {
    next: () => String(next++),
    upcoming: () => String(next),
    startAt(id) {
      if (BigInt(id) > next) next = BigInt(id);
    },
  };
}
