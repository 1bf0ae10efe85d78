/**
 * The deliveries of a key that this process has in hand and nobody has stored yet. Whoever works on the key takes those
 * whose turn comes from here, so that a stream that arrives in order is not written down message by message.
 *
 * Nothing is acknowledged from here: a delivery that waits is answered after its own number's commit, or is stored
 * like any other when its turn does not come in time. A crash loses nothing but the wait.
 */
import type { Clock } from '../clock.ts';
import type { Context } from '../handler.ts';
import type { Message } from '../message.ts';
import type { Outcome } from '../outcome.ts';
import type { Lease } from './lease.ts';
import type { KeyRef, OrderStore } from './order-store.ts';
import type { Arrival } from './place.ts';

export type Delivery = Readonly<{ ref: KeyRef; arrival: Arrival; message: Message; context: Context }>;

/** What becomes of a delivery that waits. */
export type Turn =
  /** It was not its turn: it is stored. */
  | Readonly<{ kind: 'none' }>
  | (Line & Readonly<{ kind: 'lead' }>)
  /** Somebody has run it. */
  | Readonly<{ kind: 'ran'; outcome: Outcome }>;

/** Deliveries that follow one another, for which the key's lease was kept: the first of them runs them all. */
export type Line = Readonly<{
  lease: Lease;
  line: readonly Waiting[];
  /** As `working` answers it. */
  done: () => void;
}>;

export type Waiting = Readonly<{
  delivery: Delivery;
  /** Nobody has started it, and it has not gone to be stored. */
  waits(): boolean;
  /** From here on it does not leave by itself. */
  start(): void;
  answer(turn: Turn): void;
}>;

export type InHand = Readonly<{
  /** Somebody in this process works on the key, until the result is called. */
  working(ref: KeyRef): () => void;
  /**
   * Resolves at once where nobody in this process works on the key, and soon after `arrivedAt` (monotonic) at the
   * latest where its turn does not come.
   */
  turnOf(delivery: Delivery, clock: Clock, arrivedAt: number): Promise<Turn>;
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

type Key = { workers: number; readonly waiting: Map<number, Waiting> };

/** By store: the sweep of a process works on the same keys as its deliveries. */
const hands = new WeakMap<OrderStore, InHand>();

export function inHandOf(store: OrderStore): InHand {
  const known = hands.get(store);
  if (known !== undefined) return known;
  const made = inHand();
  hands.set(store, made);
  return made;
}

/**
 * Leaves the key, whose lease was kept for them, to the first of the line. False where it has gone meanwhile: then the
 * caller still has the key.
 */
export function handOver(
  { store }: Readonly<{ store: OrderStore }>,
  ref: KeyRef,
  lease: Lease,
  line: readonly Waiting[],
): boolean {
  const [first] = line;
  if (first === undefined || !first.waits()) return false;
  first.answer({ kind: 'lead', lease, line, done: inHandOf(store).working(ref) });
  return true;
}

function inHand(): InHand {
  const keys = new Map<string, Key>();
  const idOf = (ref: KeyRef): string => JSON.stringify([ref.consumer, ref.key]);
  return {
    working(ref) {
      const id = idOf(ref);
      const key = keys.get(id) ?? { workers: 0, waiting: new Map<number, Waiting>() };
      keys.set(id, key);
      key.workers += 1;
      let works = true;
      return () => {
        if (!works) return;
        works = false;
        key.workers -= 1;
        if (key.workers > 0) return;
        keys.delete(id);
        for (const one of key.waiting.values()) one.answer({ kind: 'none' });
      };
    },
    async turnOf(delivery, clock, arrivedAt) {
      const { number } = delivery.arrival;
      const leftMs = arrivedAt + WAIT_MS - clock.monotonic();
      // Those that were judged by the same look: the one whose turn it is may be among them.
      await Promise.resolve();
      const key = keys.get(idOf(delivery.ref));
      // A second copy of a number does not wait behind the first.
      if (key === undefined || key.waiting.has(number) || leftMs <= 0) return { kind: 'none' };
      return new Promise((resolve) => {
        let state: 'waiting' | 'started' | 'answered' = 'waiting';
        const answer = (turn: Turn): void => {
          if (state === 'answered') return;
          state = 'answered';
          cancel();
          key.waiting.delete(number);
          resolve(turn);
        };
        const start = (): void => {
          state = 'started';
          cancel();
        };
        const cancel = clock.after(leftMs, () => answer({ kind: 'none' }));
        key.waiting.set(number, { delivery, waits: () => state === 'waiting', start, answer });
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
