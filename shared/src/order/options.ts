/**
 * Settings of in-order delivery, checked once when `orderedDelivery` is called.
 *
 * `StreamPolicy` is what all parts of the room work with: the checked settings, with every default filled in.
 */
import { randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { ConfigError, textOf } from '../errors.ts';
import type { Middleware } from '../handler.ts';
import type { GapRepair } from '../outbox/gap-repair.ts';
import type { PayloadRoom } from '../payload/payload-room.ts';
import type { StreamAdmin, StreamRef, StreamStore } from './stream-store.ts';

/**
 * As `start`: a stream that is new to its consumer begins at the publisher's counter. One that begins with 1 is not
 * delayed; any other begins `gap.timeout` after its first message, once it is clear which of the older ones come.
 */
export type CounterStart = Readonly<{
  /**
   * The counter of a key as it is now, strongly consistent; undefined where there is none. Rejects with TransientError
   * when it cannot be read.
   */
  read(key: string): Promise<Readonly<{ next: number; epoch: string }> | undefined>;
}>;

export type RetryOptions = Readonly<{
  /** Pause after the first failure of the next message, doubled with each further one (default 1s) … */
  min?: Duration;
  /** … up to this (default 60s). */
  max?: Duration;
  /**
   * How often a number is started before it is poison (default 10): failures of the handler, and processes that died
   * in it, counted across processes and on every path. With the pauses above that is four minutes, and ten where only
   * the sweep of every minute tries again. What the handler calls a dead letter is poison at once.
   */
  attempts?: number;
}>;

export type GapOptions = Readonly<{
  /** How old a gap must be before the sweep looks at it, and how long a repair has to show (default 5m, at least 1s). */
  timeout?: Duration;
  /** Publishes again what the publisher's outbox still has (default: nothing does). */
  repair?: GapRepair;
}>;

export type StreamOptions = Readonly<{
  /** Default: the machine's. */
  clock?: Clock;
  /**
   * What a stream belongs to. `source` (default): one `sequenceKey` that comes through two subscriptions is two
   * streams, each with its own numbers. `consumer`: it is one stream, whichever subscription a number comes through.
   */
  streamScope?: 'source' | 'consumer';
  /**
   * The longest time without a commit while a batch runs (default 60s, at least 1s). A handler that runs longer is
   * aborted and its number is tried again, so this must be above the handler's longest time.
   */
  lease?: Duration;
  /** The first number of a stream that is not known yet (default 1); lower ones are acknowledged as stale. Or a counter. */
  start?: number | CounterStart;
  /** A number further than this beyond the last one done is a dead letter (default 100,000). */
  maxAhead?: number;
  retry?: RetryOptions;
  /**
   * What becomes of poison. `block` (default): the stream stops, visibly, and keeps what comes, until `resume` or
   * `skip`; other streams flow. `skip`: its dead letter is published, then the stream goes on without it.
   */
  onPoison?: 'block' | 'skip';
  /** What becomes of numbers that do not come. `wait` (default): for ever, visibly. `skip`: they are skipped. */
  onGap?: 'wait' | 'skip';
  gap?: GapOptions;
  /**
   * What becomes of a number that is done and whose content is not remembered any more (a stream keeps the hashes of
   * its last 100 numbers), so that it may be another message. `deadLetter` (default): it goes to the dead letters as
   * `SEQUENCE_STALE_UNKNOWN`. `acknowledge`: it is acknowledged, with a warning and a metric; for a seek or a replay.
   */
  onUnknownStale?: 'deadLetter' | 'acknowledge';
  /** How many held messages one read may fetch (default 32, at least 1). */
  pageSize?: number;
  /** Where messages wait that are too large for the store. Without it they are refused and come again. */
  payloads?: PayloadRoom;
  /** As `deadLettering(publisher, topic)` makes it. Needed for `onPoison: 'skip'`, and used for nothing else. */
  deadLetters?: Middleware;
  /**
   * Called when a stream should be visited at `atMs` (milliseconds since the epoch on the store's clock), to be sooner
   * than the next sweep. Losing the call costs time only. A promise is awaited for three seconds at most, before the
   * last answer that a delivery gives; one that rejects is logged. A visit is what `wake` of `orderedDelivery` does.
   */
  wake?: (stream: StreamRef, atMs: number) => void | Promise<void>;
  /** Mints the names of leases and commits (default: random UUIDs). */
  newId?: () => string;
}>;

/** The checked settings. Times are in milliseconds. */
export type StreamPolicy = Readonly<{
  store: StreamStore & StreamAdmin;
  clock: Clock;
  streamScope: 'source' | 'consumer';
  leaseMs: number;
  /** 1 with a counter, which says it then for each stream that is new. */
  start: number;
  counter: CounterStart | undefined;
  maxAhead: number;
  retryMinMs: number;
  retryMaxMs: number;
  maxAttempts: number;
  onPoison: 'block' | 'skip';
  onGap: 'wait' | 'skip';
  gapTimeoutMs: number;
  repair: GapRepair | undefined;
  onUnknownStale: 'deadLetter' | 'acknowledge';
  pageSize: number;
  payloads: PayloadRoom | undefined;
  deadLetters: Middleware;
  wake: (stream: StreamRef, atMs: number) => void | Promise<void>;
  newId: () => string;
}>;

const METHODS = ['read', 'held', 'commit', 'transact', 'list', 'count', 'countHeld'] as const;
const OPTIONS = {
  clock: {},
  streamScope: {},
  lease: {},
  start: {},
  maxAhead: {},
  retry: { min: {}, max: {}, attempts: {} },
  onPoison: {},
  onGap: {},
  gap: { timeout: {}, repair: {} },
  onUnknownStale: {},
  pageSize: {},
  payloads: {},
  deadLetters: {},
  wake: {},
  newId: {},
} as const satisfies Readonly<Record<keyof StreamOptions, object>>;

/** Throws ConfigError `INVALID_STORE` for what is no store, `INVALID_OPTION` naming the option, its value and what is accepted. */
export function streamPolicy(store: StreamStore & StreamAdmin, options: StreamOptions = {}): StreamPolicy {
  const missing = METHODS.find((method) => typeof store?.[method] !== 'function');
  if (missing !== undefined) {
    const accepted = 'what an adapter makes, for example firestoreStreams(client)';
    throw new ConfigError('INVALID_STORE', `the store has no method ${missing}; accepted: ${accepted}`);
  }
  checkNames('', options, OPTIONS);
  checkNames('retry.', options.retry ?? {}, OPTIONS.retry);
  checkNames('gap.', options.gap ?? {}, OPTIONS.gap);
  const { clock = systemClock(), retry = {}, gap = {}, deadLetters, payloads } = options;
  const retryMinMs = duration('retry.min', retry.min ?? '1s', 1);
  const retryMaxMs = duration('retry.max', retry.max ?? '60s', 1);
  if (retryMaxMs < retryMinMs) throw refuse('retry.max', retry.max, 'not below retry.min');
  const onPoison = choice('onPoison', options.onPoison ?? 'block', ['block', 'skip']);
  if (onPoison === 'skip' && deadLetters === undefined) {
    throw refuse('onPoison', onPoison, 'skip only with deadLetters: nothing is skipped without a trace');
  }
  return {
    store,
    clock: port('clock', clock, ['now', 'monotonic', 'after']),
    streamScope: choice('streamScope', options.streamScope ?? 'source', ['source', 'consumer']),
    leaseMs: duration('lease', options.lease ?? '60s', 1_000),
    ...startOf(options.start ?? 1),
    maxAhead: wholeNumber('maxAhead', options.maxAhead ?? 100_000),
    retryMinMs,
    retryMaxMs,
    maxAttempts: wholeNumber('retry.attempts', retry.attempts ?? 10),
    onPoison,
    onGap: choice('onGap', options.onGap ?? 'wait', ['wait', 'skip']),
    gapTimeoutMs: duration('gap.timeout', gap.timeout ?? '5m', 1_000),
    repair: gap.repair && port('gap.repair', gap.repair, ['republish']),
    onUnknownStale: choice('onUnknownStale', options.onUnknownStale ?? 'deadLetter', [
      'deadLetter',
      'acknowledge',
    ]),
    pageSize: wholeNumber('pageSize', options.pageSize ?? 32),
    payloads: payloads && port('payloads', payloads, ['put', 'get', 'done']),
    deadLetters: callable('deadLetters', deadLetters ?? ((next) => next)),
    wake: callable('wake', options.wake ?? ((): void => undefined)),
    newId: callable('newId', options.newId ?? randomUUID),
  };
}

/** The stream of a key that came through `source`. */
export const streamRef = (
  { streamScope }: Pick<StreamPolicy, 'streamScope'>,
  consumer: string,
  source: string,
  key: string,
): StreamRef => ({ consumer, source: streamScope === 'source' ? source : '', key });

function startOf(start: number | CounterStart): Pick<StreamPolicy, 'start' | 'counter'> {
  if (typeof start === 'number') return { start: wholeNumber('start', start), counter: undefined };
  if (typeof start?.read !== 'function') throw refuse('start', start, 'a whole number from 1, or a counter');
  return { start: 1, counter: start };
}

function checkNames(path: string, given: object, known: object): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw refuse(path.slice(0, -1) || 'options', given, 'an object');
  }
  const names = Object.keys(known);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const [nearest = ''] = names.toSorted((left, right) => distance(unknown, left) - distance(unknown, right));
  const value = (given as Readonly<Record<string, unknown>>)[unknown];
  throw refuse(`${path}${unknown}`, value, `no option of that name; the nearest is ${path}${nearest}`);
}

/** The fewest letters to insert, remove or replace (Levenshtein). */
function distance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (const [index, letter] of left.toLowerCase().split('').entries()) {
    const next = [index + 1];
    for (const [at, other] of right.toLowerCase().split('').entries()) {
      const replaced = (row[at] ?? 0) + Number(letter !== other);
      next.push(Math.min(replaced, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

function duration(path: string, value: string, leastMs: number): number {
  let milliseconds: number;
  try {
    milliseconds = toMilliseconds(value, path);
  } catch {
    throw refuse(path, value, 'a whole number and a unit of ms, s, m, h or d, for example "30s"');
  }
  if (milliseconds < leastMs) throw refuse(path, value, `at least ${leastMs}ms`);
  return milliseconds;
}

function wholeNumber(path: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) throw refuse(path, value, 'a whole number from 1');
  return value;
}

function choice<Value extends string>(path: string, value: Value, accepted: readonly Value[]): Value {
  if (!accepted.includes(value)) throw refuse(path, value, accepted.join(' or '));
  return value;
}

function callable<Value>(path: string, value: Value): Value {
  if (typeof value !== 'function') throw refuse(path, value, 'a function');
  return value;
}

function port<Port extends object>(path: string, value: Port, methods: readonly (keyof Port)[]): Port {
  const missing = methods.find((method) => typeof value?.[method] !== 'function');
  if (missing !== undefined) throw refuse(path, value, `an object with the method ${String(missing)}`);
  return value;
}

const refuse = (path: string, value: unknown, accepted: string): ConfigError =>
  new ConfigError('INVALID_OPTION', `${path} is ${shown(value)}; accepted: ${accepted}`);

/** Any value as a short text: a refusal must not fail at the value that it refuses. */
function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  try {
    return (JSON.stringify(value) ?? String(value)).slice(0, 100);
  } catch (error) {
    return `a value without a text (${textOf(error)})`;
  }
}
