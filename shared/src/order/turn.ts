/** A delivery that waits in memory for its turn, and what becomes of it. */
import type { Context, Handler } from '../handler.ts';
import type { Message } from '../message.ts';
import type { Outcome } from '../outcome.ts';
import type { Lease } from './lease.ts';
import type { KeyRef } from './order-store.ts';
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
  /** Its own, and called in its own asynchronous context, whoever runs it: a trace, a request's storage. */
  handler: Handler;
  /** Nobody has started it, it has not gone to be stored, and its time is not over. */
  waits(): boolean;
  /** From here on it does not leave by itself. */
  start(): void;
  answer(turn: Turn): void;
}>;
