/**
 * Settings of in-order delivery, checked once when the middleware or the sweep is made.
 */
import { randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { ConfigError } from '../errors.ts';
import type { Handler, Middleware } from '../handler.ts';
import type { GapRepair } from '../outbox/gap-repair.ts';
import type { PayloadRoom } from '../payload/payload-room.ts';
import type { CounterStart } from './counter-start.ts';
import type { OrderStore } from './order-store.ts';

export type GapOptions = Readonly<{
  /** How old a gap must be before the sweep looks at it (default 5m), and how long a repair has to show. */
  timeout?: Duration;
  /** After the repair, if there is one. `wait` (default): for ever, visibly. `skip`: the numbers are given up. */
  policy?: 'wait' | 'skip';
  /** Publishes again what the publisher's outbox still has. */
  repair?: GapRepair;
}>;

export type InOrderOptions = Readonly<{
  /** Default: the machine's. */
  clock?: Clock;
  /**
   * How long one worker may have a key without a commit (default 60s, at least 1s). A handler that runs longer is
   * aborted and its number is tried again, so this must be above the handler's longest time.
   */
  lease?: Duration;
  /**
   * The first number of a stream that is not known yet (default 1); lower ones are acknowledged as stale. Or the
   * publisher's counter: see `CounterStart`.
   */
  start?: number | CounterStart;
  /** A number further than this beyond the last one done is refused for good (default 100,000). */
  maxAhead?: number;
  /**
   * Pause after the first failure of a head, doubled with each further one (default 1s) … Up to 100 ms the delivery
   * itself waits and tries again, up to three times, where nothing is held for the key; its ack deadline goes on meanwhile.
   */
  retryMin?: Duration;
  /** … up to this (default 60s). */
  retryMax?: Duration;
  /**
   * How often a number is started before it is poison (default 10): failures of the handler, and processes that died
   * in it, counted across processes. With the pauses above that is four minutes, and ten where only the sweep of every
   * minute tries again. What the handler calls a dead letter is poison at once.
   */
  maxAttempts?: number;
  /**
   * What becomes of poison. `halt` (default): the key stands still, visibly, and keeps what comes, until `resume` or
   * `skip` of `orders`; other keys flow. `skip`: its dead letter is published, then the stream goes on without it.
   */
  poison?: 'halt' | 'skip';
  /** As `deadLettering(publisher, topic)` makes it. Needed for `poison: 'skip'`, and used for nothing else. */
  deadLetters?: Middleware;
  /** Where messages wait that are too large for the store. Without it they are refused and come again. */
  payloads?: PayloadRoom;
  /** What the sweep does about numbers that do not come (default: they are waited for, and nothing is repaired). */
  gaps?: GapOptions;
  /** How many held messages one read of a drain may fetch (default 32, at least 1). */
  maxRun?: number;
  /**
   * Called when a key should be looked at again at `atMs` (milliseconds since the epoch on the store's clock), to be
   * sooner than the next sweep. Losing the call costs time only. A promise is awaited by nobody; one that rejects is
   * logged. Whoever is called at that time does what `wakeOrder` does.
   */
  wake?: (key: string, atMs: number) => void | Promise<void>;
  /** Mints the names of lease owners (default: random UUIDs). */
  newId?: () => string;
}>;

export type Ports = Readonly<{
  store: OrderStore;
  clock: Clock;
  leaseMs: number;
  /** 1 with a counter, which says it then for each key that is new. */
  start: number;
  counter: CounterStart | undefined;
  maxAhead: number;
  retryMinMs: number;
  retryMaxMs: number;
  maxRun: number;
  maxAttempts: number;
  poison: 'halt' | 'skip';
  deadLetters: Middleware;
  gapTimeoutMs: number;
  gapPolicy: 'wait' | 'skip';
  repair: GapRepair | undefined;
  payloads: PayloadRoom | undefined;
  wake: (key: string, atMs: number) => void | Promise<void>;
  newId: () => string;
}>;

/** Throws ConfigError naming the option, its value and what is accepted. */
export function portsOf(store: OrderStore, options: InOrderOptions): Ports {
  const leaseMs = toMilliseconds(options.lease ?? '60s', 'lease');
  const retryMinMs = toMilliseconds(options.retryMin ?? '1s', 'retryMin');
  const retryMaxMs = toMilliseconds(options.retryMax ?? '60s', 'retryMax');
  if (leaseMs < 1_000) throw refuse('lease', options.lease, 'at least 1s');
  if (retryMinMs < 1) throw refuse('retryMin', options.retryMin, 'at least 1ms');
  if (retryMaxMs < retryMinMs) throw refuse('retryMax', options.retryMax, 'not below retryMin');
  const { poison = 'halt', deadLetters, gaps = {} } = options;
  const { policy: gapPolicy = 'wait' } = gaps;
  const gapTimeoutMs = toMilliseconds(gaps.timeout ?? '5m', 'gaps.timeout');
  if (!['halt', 'skip'].includes(poison)) throw refuse('poison', poison, 'halt or skip');
  if (!['wait', 'skip'].includes(gapPolicy)) throw refuse('gaps.policy', gapPolicy, 'wait or skip');
  if (gapTimeoutMs < 1_000) throw refuse('gaps.timeout', gaps.timeout, 'at least 1s');
  if (poison === 'skip' && deadLetters === undefined) {
    throw refuse(
      'poison',
      poison,
      'skip only together with deadLetters: nothing is given up without a trace',
    );
  }
  return {
    store,
    maxAttempts: wholeNumber('maxAttempts', options.maxAttempts ?? 10),
    poison,
    deadLetters: deadLetters ?? ((next): Handler => next),
    gapTimeoutMs,
    gapPolicy,
    repair: gaps.repair,
    payloads: options.payloads,
    clock: options.clock ?? systemClock(),
    leaseMs,
    ...startOf(options.start ?? 1),
    maxAhead: wholeNumber('maxAhead', options.maxAhead ?? 100_000),
    retryMinMs,
    retryMaxMs,
    maxRun: wholeNumber('maxRun', options.maxRun ?? 32),
    wake: options.wake ?? ((): void => undefined),
    newId: options.newId ?? randomUUID,
  };
}

function startOf(start: number | CounterStart): Pick<Ports, 'start' | 'counter'> {
  if (typeof start === 'number') return { start: wholeNumber('start', start), counter: undefined };
  if (typeof start?.read !== 'function') throw refuse('start', start, 'a whole number from 1, or a counter');
  return { start: 1, counter: start };
}

function wholeNumber(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) throw refuse(name, value, 'a whole number from 1');
  return value;
}

const refuse = (name: string, value: unknown, accepted: string): ConfigError =>
  new ConfigError('INVALID_OPTION', `${name} is ${JSON.stringify(value)}; accepted: ${accepted}`);
