/**
 * What waits for an answer of a stream's worker: deliveries and visits. Each is answered once, by whatever comes first.
 *
 * Each delivery has a timer of its own: at its deadline it is answered, whatever the worker is waiting for. A visit is
 * work on a stream that no message of it asks for. The sweep and a wake-up make visits; so a visit has no delivery
 * attempts that could run out, and may take over from a process that died, and start a number that has failed.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '../clock.ts';
import { leaseLost } from '../errors.ts';
import type { Context, Handler, SweepContext } from '../handler.ts';
import type { Message } from '../message.ts';
import { type Outcome, retry } from '../outcome.ts';
import type { StoredForm } from './stored-form.ts';
import type { StreamRef } from './stream-store.ts';

/** What a message says about its place. */
export type Arrival = Readonly<{ key: string; number: number; hash: string; epoch: string | undefined }>;

/**
 * For starting a number that may have ended processes before. A process that dies with such a number takes every number
 * with it that it is running, and each of them counts an attempt. So one that has few attempts left is started while no
 * other such number runs in the process: the one that kills is then the only one that is counted.
 */
export type Turn = Readonly<{ isOver(): boolean; end(): void }>;

/** In whose time a held message runs: it has no delivery of its own. */
type Host = Readonly<{
  context: VisitContext;
  next: Handler;
  /** Monotonic. No held message is started in its time after this: half of the time that it had at first is its own. */
  startUntil: number;
  /** Answered, or out of time. */
  isOver(): boolean;
  /** Runs `work` in the asynchronous context in which it arrived. */
  within<Result>(work: () => Result): Result;
  /** May start a number that needs a turn. */
  hasTurn(): boolean;
  endTurn(): void;
}>;

export type Delivery = Host &
  Readonly<{
    arrival: Arrival;
    message: Message;
    context: Context;
    /** Monotonic. */
    arrivedAt: number;
    answer(outcome: Outcome): void;
    /** It comes again with a turn. */
    askTurn(): void;
    /** The outcome is safe, but the delivery is kept unanswered as a host; its timer answers with it. */
    keep(outcome: Outcome): void;
    kept(): Outcome | undefined;
    /** Set once it is encoded, to be held. */
    form(): StoredForm | undefined;
    encoded(form: StoredForm): void;
    /** Whether a batch has been started without it while it waited. */
    wasPassedOver(): boolean;
    passOver(): void;
  }>;

/** `asksTurn`: it comes again with a turn. */
export type VisitEnd = Visited & Readonly<{ asksTurn: boolean }>;

export type Visit = Host & Readonly<{ answer(end: VisitEnd): void; refuse(error: unknown): void }>;

type Parts<Of> = Readonly<{ context: Of; next: Handler; clock: Clock; turn: Turn | undefined }>;

/** `settle` is called once, with `asksTurn` where it comes again with a turn. */
export function delivery(
  parts: Parts<Context>,
  arrival: Arrival,
  message: Message,
  settle: (outcome: Outcome | 'asksTurn') => void,
): Delivery {
  const { context, clock } = parts;
  const { signal } = context;
  let isAnswered = false;
  let kept: Outcome | undefined;
  let form: StoredForm | undefined;
  let isPassedOver = false;
  const answer = (outcome: Outcome | 'asksTurn'): void => {
    if (isAnswered) return;
    isAnswered = true;
    cancel();
    signal.removeEventListener('abort', expire);
    settle(outcome);
  };
  const expire = (): void => answer(kept ?? retry(leaseLost('the time of the delivery was over')));
  const cancel = clock.after(context.deadline - clock.monotonic(), expire);
  signal.addEventListener('abort', expire, { once: true });
  // A signal that is aborted already tells nothing any more.
  if (signal.aborted) expire();
  return {
    ...hostParts(parts),
    isOver: () => isAnswered || signal.aborted || clock.monotonic() >= context.deadline,
    arrival,
    message,
    context,
    arrivedAt: clock.monotonic(),
    answer,
    askTurn: () => answer('asksTurn'),
    keep: (outcome) => void (kept = outcome),
    kept: () => kept,
    form: () => form,
    encoded: (stored) => void (form = stored),
    wasPassedOver: () => isPassedOver,
    passOver: () => void (isPassedOver = true),
  };
}

export function visit(
  parts: Parts<VisitContext>,
  answer: (end: VisitEnd) => void,
  refuse: (error: unknown) => void,
): Visit {
  const { context, clock } = parts;
  return {
    ...hostParts(parts),
    isOver: () => context.signal.aborted || clock.monotonic() >= context.deadline,
    context,
    answer,
    refuse,
  };
}

function hostParts({ context, next, clock, turn }: Parts<VisitContext>) {
  const now = clock.monotonic();
  return {
    next,
    startUntil: now + (context.deadline - now) / 2,
    within: AsyncLocalStorage.snapshot(),
    hasTurn: () => turn?.isOver() === false,
    endTurn: () => turn?.end(),
  };
}

/** A delivery's context without its source: what is held runs under the source that it came through. */
export type VisitContext = SweepContext;

export type Visited = Readonly<{
  /** Whether this visit worked on the stream. If not, nothing was due, or another process or visit has the stream. */
  taken: boolean;
  /** Numbers that ran in this visit and are counted as done. */
  drained: number;
}>;

/**
 * Ends by the context's deadline, with half of the time that is left when it is called for starting held messages.
 * Rejects with TransientError `STORE_UNAVAILABLE` or `UNREADABLE_STATE` when nothing is known. A stream that this
 * process works on, and one that waits for another visit, is answered `taken: false` at once.
 */
export type VisitStream = (ref: StreamRef, context: VisitContext, next: Handler) => Promise<Visited>;
