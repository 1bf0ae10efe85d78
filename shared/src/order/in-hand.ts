/**
 * The deliveries of a key that this process has in hand and nobody has stored yet. Whoever works on the key takes those
 * whose turn comes from here, so that a stream that arrives in order is not written down message by message.
 *
 * Nothing is acknowledged from here: a delivery that waits is answered after its own number's commit, or is stored
 * like any other when its turn does not come in time. A crash loses nothing but the wait.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '../clock.ts';
import type { Handler } from '../handler.ts';
import type { KeyRef, OrderStore } from './order-store.ts';
import { presentNumbers } from './present.ts';
import { isMixed, leftKeys, type Reach, reachOf } from './reach.ts';
import type { Delivery, Turn, Waiting } from './turn.ts';

export type InHand = Readonly<{
  /** A delivery of that number has come to this process, and is not answered before the result is called. */
  came(ref: KeyRef, number: number): () => void;
  /** Somebody in this process works on the key, until the result is called. `next`, if that is known, is behind him. */
  working(ref: KeyRef, next?: number): () => void;
  /** A drain runs what is stored before `next`. */
  drains(ref: KeyRef, next: number): void;
  /** Those run that wait for `from` and the numbers behind it, before `next`. */
  runs(ref: KeyRef, from: number, next: number): void;
  /**
   * Resolves at once where nobody in this process works on the key or is about to, or its stream is shuffled; and soon
   * after `arrivedAt` (monotonic) at the latest where its turn does not come. `next`: the number that an idle key waits for.
   * If that has come, too, whoever brought it is about to work on the key.
   */
  turnOf(delivery: Delivery, handler: Handler, clock: Clock, arrivedAt: number, next?: number): Promise<Turn>;
  /**
   * Those that wait for `from` and the numbers behind it, without a hole: up to half of all that are in hand, `ran` of
   * which are about to be answered. While the subscription brings others for these, the other half is there to go on
   * with, and the key need not be let go of.
   */
  line(ref: KeyRef, from: number, ran: number): readonly Waiting[];
}>;

/** The time of a delivery is its own: it is stored after this, so that it can be acknowledged. */
const WAIT_MS = 1_000;
/** In one commit, and so to repeat after a crash; also the identities that a key document carries. */
const LONGEST_LINE = 50;

type Key = {
  workers: number;
  /** While nobody works on it: what those wait for that have come with whoever is about to. */
  awaited: number | undefined;
  readonly waiting: Map<number, Waiting>;
  readonly reach: Reach;
  /**
   * Nobody waits until they come in their order again: those that wait would be all that the subscription has
   * outstanding, and keep it from bringing what fills the holes. Stored at once, they let a drain run on and on.
   */
  shuffled: boolean;
};

/** By store: the sweep of a process works on the same keys as its deliveries. */
const hands = new WeakMap<OrderStore, InHand>();

export function inHandOf(store: OrderStore): InHand {
  const known = hands.get(store);
  if (known !== undefined) return known;
  const made = inHand();
  hands.set(store, made);
  return made;
}

const newKey = (reach: Reach | undefined, awaited?: number): Key => {
  return {
    workers: 0,
    awaited,
    shuffled: reach !== undefined,
    waiting: new Map(),
    reach: reach ?? reachOf(),
  };
};

function inHand(): InHand {
  const keys = new Map<string, Key>();
  const present = presentNumbers();
  const left = leftKeys();
  const idOf = (ref: KeyRef): string => JSON.stringify([ref.consumer, ref.key]);
  const review = ({ waiting, shuffled, reach }: Key): void => {
    if (!shuffled || (reach.isInOrder() && !isMixed(waiting))) return;
    for (const one of waiting.values()) if (one.waits()) one.answer({ kind: 'none' });
  };
  const moved = (key: Key | undefined, shuffled: boolean, next: number, from: number): void => {
    if (key === undefined) return;
    key.shuffled = shuffled;
    key.reach.goesTo(next, from);
    review(key);
  };
  /** The key, if somebody works on it, or has come who will: then those that came with him wait for that. */
  const workedOn = (ref: KeyRef, next: number | undefined): Key | undefined => {
    const id = idOf(ref);
    const known = keys.get(id);
    if (known !== undefined || next === undefined || !present.has(id, next)) return known;
    const key = newKey(left.take(id), next);
    key.reach.goesTo(next, next);
    keys.set(id, key);
    return key;
  };
  const forget = (id: string, key: Key): void => {
    if (key.workers > 0 || key.waiting.size > 0 || keys.get(id) !== key) return;
    keys.delete(id);
    left.leave(id, key.reach);
  };
  const leave = (id: string, key: Key): void => {
    if (key.workers > 0) return;
    for (const one of key.waiting.values()) one.answer({ kind: 'none' });
    forget(id, key);
  };
  return {
    came(ref, number) {
      const id = idOf(ref);
      const gone = present.came(id, number);
      return () => {
        gone();
        const key = keys.get(id);
        // He has not worked on it: nobody is about to.
        if (key?.awaited === number && !present.has(id, number)) leave(id, key);
      };
    },
    working(ref, next) {
      const id = idOf(ref);
      const key = keys.get(id) ?? newKey(left.take(id));
      keys.set(id, key);
      key.workers += 1;
      if (next !== undefined) key.reach.goesTo(next, next);
      let works = true;
      return () => {
        if (!works) return;
        works = false;
        key.workers -= 1;
        leave(id, key);
      };
    },
    drains: (ref, next) => moved(keys.get(idOf(ref)), true, next, next),
    runs: (ref, from, next) => moved(keys.get(idOf(ref)), false, next, from),
    async turnOf(delivery, handler, clock, arrivedAt, next) {
      const { number } = delivery.arrival;
      const { signal, deadline } = delivery.context;
      const leftMs = arrivedAt + WAIT_MS - clock.monotonic();
      // Those that were judged by the same look: the one whose turn it is may be among them.
      await Promise.resolve();
      const id = idOf(delivery.ref);
      const key = workedOn(delivery.ref, next);
      if (key === undefined) left.came(id, number);
      // A second copy of a number does not wait behind the first, and whoever is waited for has nobody to wait for.
      if (key === undefined || key.waiting.has(number)) return { kind: 'none' };
      if (key.workers === 0 && key.awaited === number) return { kind: 'none' };
      const isNear = key.reach.came(number);
      if (leftMs <= 0 || !isNear) {
        forget(id, key);
        return { kind: 'none' };
      }
      const inOwnContext = AsyncLocalStorage.snapshot();
      return new Promise((resolve) => {
        let state: 'waiting' | 'started' | 'answered' = 'waiting';
        const answer = (turn: Turn): void => {
          if (state === 'answered') return;
          state = 'answered';
          cancel();
          key.waiting.delete(number);
          forget(id, key);
          resolve(turn);
        };
        const start = (): void => {
          state = 'started';
          cancel();
        };
        const cancel = clock.after(leftMs, () => answer({ kind: 'none' }));
        key.waiting.set(number, {
          delivery,
          handler: async (message, context) => inOwnContext(handler, message, context),
          waits: () => state === 'waiting' && !signal.aborted && clock.monotonic() < deadline,
          start,
          answer,
        });
        if (key.reach.isThin(key.waiting.size)) key.shuffled = true;
        // What came may show a hole: the others had better go too.
        review(key);
      });
    },
    line(ref, from, ran) {
      const { waiting } = keys.get(idOf(ref)) ?? {};
      const found: Waiting[] = [];
      for (let number = from; found.length < LONGEST_LINE; number += 1) {
        const one = waiting?.get(number);
        if (one === undefined || !one.waits()) break;
        found.push(one);
      }
      return found.slice(0, Math.ceil((found.length + ran) / 2));
    },
  };
}
