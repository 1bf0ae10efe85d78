/**
 * The message relay of the outbox: as a loop, as one pass for a function or a sweep, and as the fast path of a publisher.
 * Any number of them may run, in any processes, beside each other.
 *
 * Everything is published at least once, rows of one key in order. Two relays at once, or one that dies, cost copies
 * under the same `dedupId`, never a message.
 */
import { randomUUID } from 'node:crypto';
import { keyedBatch } from '../async/keyed-batch.ts';
import { type Clock, sleep, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { codeOf, refused, textOf } from '../errors.ts';
import { consoleLog, type Log, withoutIdentifiers } from '../log.ts';
import type { PayloadStore } from '../payload/payload-store.ts';
import type { Publisher } from '../publish/publisher.ts';
import { drain } from './drain.ts';
import { type GapRepair, gapRepair } from './gap-repair.ts';
import { publishUnordered, publishOwn } from './unordered-rows.ts';
import { resume, skip } from './operations.ts';
import type { RelayStore, OutboxFailures } from './outbox-store.ts';
import { passOver, type OutboxSwept, type Waiting } from './pass.ts';
import type { PassContext } from './pass-work.ts';
import type { Row, StreamRef } from './rows.ts';
import type { DrainPorts } from './stream-lease.ts';
import { tail, type Tailed } from './tail.ts';
import {
  callable,
  type Check,
  checkBelow,
  checkOptions,
  clock as aClock,
  durationFrom,
  holding,
  listOf,
  log as aLog,
  payloads as somePayloads,
  port,
  publisher as aPublisher,
  required,
  RETRY_SHAPE,
  type RetryPauses,
  retryPauses,
  type Shape,
  objectOf,
  signal as aSignal,
  text,
  whole,
} from '../options.ts';

export type RelayOptions = Readonly<{
  /** Default: the machine's. */
  clock?: Clock;
  /** Default: warnings and errors as JSON lines on standard error. */
  log?: Log;
  /**
   * The payload store of the publishers that have one (`outbox`). Without it their large rows wait
   * (`PAYLOAD_STORE_MISSING`).
   */
  payloads?: PayloadStore;
  /** How long a process has a stream without a commit, default `60s`, at least `3s`. */
  lease?: Duration;
  /**
   * After so long the outcome of a publish counts as unknown (default `20s`, at least `1ms`, below `lease`): above
   * the publisher's own limit.
   */
  publishTimeout?: Duration;
  /** Pauses between the attempts of a row, of which there is no limit (default `1s` to `60s`). */
  retry?: RetryPauses;
  /**
   * Pause between two passes of `run` (default `5s`, at least `1ms`). An idle pass costs a read for each shard, and
   * two.
   */
  interval?: Duration;
  /**
   * How long after its commit a row is left to its writer when `tailRow` gets it (default `500ms`, at most `30s`):
   * above what a publish takes, or copies go out. `0ms` where no writer publishes itself.
   */
  grace?: Duration;
  /** Rows of a key that are read, and kept in memory, at a time (default 25, at least 1): each may have a megabyte. */
  pageSize?: number;
  /** Mints the names of leases (default: random UUIDs). */
  newId?: () => string;
}>;

/** Each method rejects with ConfigError `INVALID_OPTION` for an argument that is not of its type, and does nothing. */
export type Relay = Readonly<{
  /**
   * Publishes the pending rows of the stream, or leaves them to the process that works on it. Resolves once the rows up
   * to `upTo` are published or left. Never rejects otherwise. Calls of one process share runs.
   */
  flush(ref: StreamRef, upTo: number): Promise<void>;
  /** The same for rows without order, by the process that has just committed them and has their content. */
  publishRows(rows: readonly Row[]): Promise<void>;
  /** The same for rows without order that another process may be publishing. */
  flushRows(ids: readonly string[]): Promise<void>;
  /**
   * One row that a trigger of the database says is there, by the ID of its document: publishes it, and what its stream or
   * group has, unless its writer does so within the `grace`. Rejects with STORE_UNAVAILABLE when the store cannot be
   * asked, and with UNREADABLE_ROW for a row of another version.
   */
  tailRow(id: string): Promise<Tailed>;
  /**
   * One pass over all pending rows that are due, the inbox's rows included. Rejects with STORE_UNAVAILABLE when the
   * store cannot be asked.
   */
  sweep(context: PassContext): Promise<OutboxSwept>;
  /** Passes until the signal is aborted. Never rejects: what goes wrong is logged and tried again. */
  run(signal: AbortSignal): Promise<void>;
  /** Streams and rows that wait for an operator. */
  listFailures(limit?: number): Promise<OutboxFailures>;
  /**
   * Lets a blocked stream go on, with the row that blocked it. False: it was not blocked. A key means the stream of its
   * present counter; a stream of an earlier counter is named by its `ref`, as `listFailures` answers it.
   */
  resume(stream: string | StreamRef): Promise<boolean>;
  /**
   * Skips the row that blocks the stream, or that is missing: the stream goes on behind it. Answers the last number
   * that was skipped, undefined where there was nothing to skip. It is a gap for every consumer. With a `number` it
   * skips that one or nothing: undefined where the stream has passed it, PermanentError `STREAM_NOT_BLOCKED` where it
   * has not come to it.
   */
  skip(stream: string | StreamRef, number?: number): Promise<number | undefined>;
  /** For `gap` of a consumer's `orderedDelivery`: publishes numbers again that were lost on their way. */
  repair: GapRepair;
  /** Tries a row without order again that failed for good. False: no failed row has this name. */
  reopen(id: string): Promise<boolean>;
}>;

type Flush = Readonly<{ ref: StreamRef; upTo: number }>;

/**
 * Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * const messages = relay(firestoreOutbox(firestore), publisher, { retry: { max: '5m' } });
 * const streams = orderedDelivery(firestoreStreams(firestore), { gap: { repair: messages.repair } });
 * await messages.run(new AbortController().signal);
 */
export function relay(store: RelayStore, publisher: Publisher, options: RelayOptions = {}): Relay {
  checkOptions<RelayOptions>(options, {
    ...DRAIN_SHAPE,
    interval: durationFrom('1ms'),
    grace: durationFrom('0ms', '30s'),
  });
  const { interval = '5s', grace = '500ms', ...rest } = options;
  const ports = portsOf(store, publisher, rest);
  const { clock, log } = ports;
  const intervalMs = toMilliseconds(interval, 'interval');
  const graceMs = toMilliseconds(grace, 'grace');
  const never = new AbortController().signal;
  const waiting: Waiting = new Map();

  /** Undefined where `work` rejects. */
  const quietly = async <Result>(
    fields: Record<string, string>,
    work: () => Promise<Result>,
  ): Promise<Result | undefined> => {
    try {
      return await work();
    } catch (error) {
      const failure = { code: codeOf(error), error: textOf(error) };
      log.warn('outbox: not published; the next pass does it', { ...fields, ...failure });
      return undefined;
    }
  };

  /** A call that comes during a run and is not served by it gets another run, for its rows may be newer. */
  const flushAll = keyedBatch<Flush, Tailed>({
    async run(_name, flushes, answerEarly) {
      const ref = flushes[0]?.ref;
      if (ref === undefined) return [];
      const progress = (sent: number): void => answerEarly(({ upTo }) => (upTo <= sent ? 'sent' : undefined));
      const drained = await quietly({ sequenceKey: ref.key }, () => drain(ports, ref, never, progress));
      const hasFailed = drained === undefined || drained.kind === 'failed';
      return flushes.map(({ upTo }) => {
        if (drained !== undefined && upTo <= drained.sent) return 'sent';
        return hasFailed ? 'failed' : 'left';
      });
    },
  });
  const flush = ({ key, epoch }: StreamRef, upTo: number): Promise<Tailed> =>
    flushAll(JSON.stringify([key, epoch]), { ref: { key, epoch }, upTo });

  return {
    async flush(ref, upTo) {
      aRef('ref', ref);
      whole(0)('upTo', upTo);
      await flush(ref, upTo);
    },
    async publishRows(rows) {
      someRows('rows', rows);
      await quietly({ row: rows[0]?.id ?? '' }, () => publishOwn(ports, rows));
    },
    async flushRows(ids) {
      someIds('ids', ids);
      for (const id of ids) await quietly({ row: id }, () => publishUnordered(ports, id));
    },
    async tailRow(id) {
      required(text)('id', id);
      return tail(ports, id, graceMs, (place) => flush(place, place.number));
    },
    async sweep(context) {
      checkPass(context);
      return passOver(ports, context, waiting);
    },
    async run(signal) {
      aSignal('signal', signal);
      while (!signal.aborted) {
        let isBehind = false;
        await quietly({}, async () => {
          const { done, due } = await passOver(ports, { signal }, waiting);
          // Rows were committed during the pass: others may be waiting already.
          isBehind = done > due;
        });
        if (!isBehind) await sleep(clock, intervalMs, signal);
      }
    },
    async listFailures(limit = 100) {
      whole(1)('limit', limit);
      return store.listFailures(limit);
    },
    async resume(stream) {
      aStream('stream', stream);
      return resume(store, stream);
    },
    async skip(stream, number) {
      aStream('stream', stream);
      if (number !== undefined) whole(1)('number', number);
      return skip(store, stream, number);
    },
    repair: gapRepair(ports),
    async reopen(id) {
      text('id', id);
      return store.reopen(id);
    },
  };
}

const aRef = holding({ key: text, epoch: text });
const aStream: Check = (path, value) => (typeof value === 'string' ? text : aRef)(path, value);
const someRows = listOf(holding({ id: text }), 'a list of rows');
const someIds = listOf(text, 'a list of IDs of rows');

/** What passes and repairs of gaps have in common. */
type DrainOptions = Omit<RelayOptions, 'interval' | 'grace'>;

/** One check for each option. */
const DRAIN_SHAPE: Shape<Required<DrainOptions>> = {
  clock: aClock,
  log: aLog,
  payloads: somePayloads,
  lease: durationFrom('3s'),
  publishTimeout: durationFrom('1ms'),
  retry: objectOf(RETRY_SHAPE),
  pageSize: whole(1),
  newId: callable,
};

/** Throws ConfigError naming the option, its value and what is accepted. */
export function portsOf(store: RelayStore, publisher: Publisher, options: DrainOptions): DrainPorts {
  port(RELAY_METHODS, 'the store of an outbox, for example firestoreOutbox(firestore)')('store', store);
  aPublisher('publisher', publisher);
  checkOptions<DrainOptions>(options, DRAIN_SHAPE);
  const { clock = systemClock(), log = consoleLog(), payloads, newId = randomUUID } = options;
  const { lease = '60s', publishTimeout = '20s', retry, pageSize = 25 } = options;
  // The default is cut short by a shorter lease; one that is given must be able to take effect.
  if (options.publishTimeout !== undefined) {
    checkBelow(
      { path: 'publishTimeout', given: publishTimeout, standard: publishTimeout },
      { path: 'lease', given: options.lease, standard: lease },
      'the lease would end before a publish that is slow and succeeds',
    );
  }
  const { minMs: retryMinMs, maxMs: retryMaxMs } = retryPauses(retry, '1s', '60s');
  const leaseMs = toMilliseconds(lease, 'lease');
  const publishTimeoutMs = toMilliseconds(publishTimeout, 'publishTimeout');
  return {
    store,
    publisher,
    payloads,
    clock,
    log: withoutIdentifiers(log),
    leaseMs,
    publishTimeoutMs,
    retryMinMs,
    retryMaxMs,
    pageSize,
    newId,
  };
}

const RELAY_METHODS = ['readStream', 'writeStream', 'after', 'streamOf', 'pending', 'claim', 'markSent'];

/** `relay.sweep()`, or the signal itself in the place of an object that has it. */
const checkPass = (context: unknown): void => {
  if (typeof context !== 'object' || context === null) {
    throw refused('context', context, 'an object with a signal, for example { signal }');
  }
  required(aSignal)('context.signal', Reflect.get(context, 'signal'));
};
