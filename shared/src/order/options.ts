/**
 * Settings of in-order delivery, checked once when `orderedDelivery` is called.
 *
 * `StreamPolicy` is what all parts of in-order delivery work with: the checked settings, with every default filled in.
 */
import { randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { refused } from '../errors.ts';
import type { Middleware } from '../handler.ts';
import {
  callable,
  type Check,
  checkOptions,
  clock as aClock,
  durationFrom,
  oneOf,
  payloads as somePayloads,
  port,
  RETRY_SHAPE,
  type RetryPauses,
  retryPauses,
  type Shape,
  objectOf,
  whole,
} from '../options.ts';
import type { GapRepair } from '../outbox/gap-repair.ts';
import type { PayloadStore } from '../payload/payload-store.ts';
import { propertyOf } from '../shown-value.ts';
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

export type RetryOptions = RetryPauses &
  Readonly<{
    /**
     * How often a number is started before it is poison (default 10, at least 1): failures of the handler, and processes that died
     * in it, counted across processes and on every path. With the pauses above that is four minutes, and ten where only
     * the sweep of every minute tries again. What the handler calls a dead letter is poison at once.
     */
    maxAttempts?: number;
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
  /**
   * The first number of a stream that is not known yet (default 1, from 1); lower ones are acknowledged as stale. Or
   * a counter.
   */
  start?: number | CounterStart;
  /** A number further than this beyond the last one done is a dead letter (default 100,000, at least 1). */
  maxAhead?: number;
  /** Attempts of the next message (default 10), and the pauses between them (default `1s` to `60s`). */
  retry?: RetryOptions;
  /**
   * What becomes of poison. `block` (default): the stream stops, visibly, and keeps what comes, until `resume` or
   * `skip`; other streams flow. `skip`: its dead letter is published, then the stream goes on without it.
   */
  onPoison?: 'block' | 'skip';
  /**
   * What becomes of numbers that do not come. `wait` (default): they are waited for, visibly. `skip`: they are skipped
   * `gap.timeout` after something began to wait behind them; one that comes later is a dead letter, `LATE_ARRIVAL`.
   */
  onGap?: 'wait' | 'skip';
  /** When a gap is looked at, and how it is repaired (default: after 5 minutes, and not at all). */
  gap?: GapOptions;
  /**
   * What becomes of a number that is done and whose content is not remembered any more (a stream keeps the hashes of
   * its last 100 numbers), so that it may be another message. `deadLetter` (default): it goes to the dead letters as
   * `SEQUENCE_STALE_UNKNOWN`. `ack`: it is acknowledged, with a warning and a metric; for a seek or a replay.
   */
  onUnknownStale?: 'deadLetter' | 'ack';
  /** How many held messages one read may fetch (default 32, at least 1). */
  pageSize?: number;
  /** Where messages wait that are too large for the store. Without it they are refused and come again. */
  payloads?: PayloadStore;
  /**
   * As `deadLettering(publisher, topic)` makes it (default: none). Needed for `onPoison: 'skip'`, and for the
   * operator's `skip` of a number at which a stream is blocked. Not for `onGap`: what comes late is a dead letter of the
   * stage outside.
   */
  deadLetters?: Middleware;
  /**
   * Called when a stream should be visited at `atMs` (milliseconds since the epoch on the store's clock), to be sooner
   * than the next sweep (default: nothing is called). Losing the call costs time only. A promise is awaited for three seconds at most, before the
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
  onUnknownStale: 'deadLetter' | 'ack';
  pageSize: number;
  payloads: PayloadStore | undefined;
  deadLetters: Middleware;
  wake: (stream: StreamRef, atMs: number) => void | Promise<void>;
  newId: () => string;
}>;

const METHODS = ['read', 'held', 'commit', 'transact', 'list', 'count', 'countHeld'] as const;

const beginning: Check = (path, value) => {
  if (typeof value === 'number') whole(1)(path, value);
  else if (typeof propertyOf(value, 'read') !== 'function') {
    throw refused(
      path,
      value,
      'a whole number from 1, or a counter, for example firestoreCounterStart(firestore)',
    );
  }
};

const SHAPE: Shape<Required<StreamOptions>> = {
  clock: aClock,
  streamScope: oneOf('source', 'consumer'),
  lease: durationFrom('1s'),
  start: beginning,
  maxAhead: whole(1),
  retry: objectOf<Required<RetryOptions>>({ ...RETRY_SHAPE, maxAttempts: whole(1) }),
  onPoison: oneOf('block', 'skip'),
  onGap: oneOf('wait', 'skip'),
  gap: objectOf<Required<GapOptions>>({
    timeout: durationFrom('1s'),
    repair: port(['republish'], 'a repair, for example that of relay(store, publisher)'),
  }),
  onUnknownStale: oneOf('deadLetter', 'ack'),
  pageSize: whole(1),
  payloads: somePayloads,
  deadLetters: callable,
  wake: callable,
  newId: callable,
};

/** Throws ConfigError `INVALID_OPTION` naming the store or the option, its value and what is accepted. */
export function streamPolicy(store: StreamStore & StreamAdmin, options: StreamOptions = {}): StreamPolicy {
  port(METHODS, 'a store of streams, for example firestoreStreams(firestore)')('store', store);
  checkOptions<StreamOptions>(options, SHAPE);
  const {
    clock = systemClock(),
    streamScope = 'source',
    lease = '60s',
    start = 1,
    maxAhead = 100_000,
    retry = {},
    onPoison = 'block',
    onGap = 'wait',
    gap = {},
    onUnknownStale = 'deadLetter',
    pageSize = 32,
    payloads,
    deadLetters,
    wake = (): void => undefined,
    newId = randomUUID,
  } = options;
  const { maxAttempts = 10, ...pauses } = retry;
  const { timeout = '5m', repair } = gap;
  const { minMs: retryMinMs, maxMs: retryMaxMs } = retryPauses(pauses, '1s', '60s');
  if (onPoison === 'skip' && deadLetters === undefined) {
    throw refused('onPoison', onPoison, 'skip only with deadLetters: nothing is skipped without a trace');
  }
  return {
    store,
    clock,
    streamScope,
    leaseMs: toMilliseconds(lease, 'lease'),
    start: typeof start === 'number' ? start : 1,
    counter: typeof start === 'number' ? undefined : start,
    maxAhead,
    retryMinMs,
    retryMaxMs,
    maxAttempts,
    onPoison,
    onGap,
    gapTimeoutMs: toMilliseconds(timeout, 'gap.timeout'),
    repair,
    onUnknownStale,
    pageSize,
    payloads,
    deadLetters: deadLetters ?? ((next) => next),
    wake,
    newId,
  };
}

/** The stream of a key that came through `source`. */
export const streamRef = (
  { streamScope }: Pick<StreamPolicy, 'streamScope'>,
  consumer: string,
  source: string,
  key: string,
): StreamRef => ({ consumer, source: streamScope === 'source' ? source : '', key });
