/**
 * In-order delivery: a durable resequencer, one object for all of it.
 *
 * Messages with a `sequence` attribute reach the handler as 1, 2, 3, … within their `sequenceKey`; messages without one
 * pass through. What comes ahead of its turn is held once and acknowledged; the delivery that fills the gap runs what
 * is held behind it. Nothing is lost: a delivery is acknowledged only when a commit shows its number as done, skipped
 * or held. After a lost lease a number that already ran may run again, before anything behind it, with a larger fencing
 * token.
 */
import { parseDeliveryOptions, type Sequence } from '../attributes.ts';
import { type Context, type Handler, leastTimeOf, type Middleware } from '../handler.ts';
import { observeStage } from '../telemetry/stages.ts';
import { withTimeLimit } from '../async/time-limit.ts';
import { leaseLost, refused, TransientError } from '../errors.ts';
import { callable } from '../options.ts';
import type { Message } from '../message.ts';
import { type Outcome, retry } from '../outcome.ts';
import type { Clock } from '../clock.ts';
import { streamAdmin, type StreamOperations } from './admin.ts';
import { type StreamOptions, streamPolicy, type StreamPolicy, streamRef } from './options.ts';
import type { StreamAdmin, StreamRef, StreamStore } from './stream-store.ts';
import { type StreamSweep, streamSweep } from './sweep.ts';
import { type StreamWake, streamWake } from './wake.ts';
import { contentHash } from './stored-form.ts';
import {
  delivery,
  type Turn,
  visit,
  type VisitContext,
  type Visited,
  type VisitEnd,
  type VisitStream,
} from './mailbox.ts';
import { type StreamWorker, streamWorker } from './stream-worker.ts';

export type OrderedDelivery = StreamOperations &
  Readonly<{
    /**
     * The stage. Dead letters: `SEQUENCE_CONFLICT` (other content under a number), `SEQUENCE_STALE_UNKNOWN` (see
     * `onUnknownStale`), `LATE_ARRIVAL` (the number was skipped), `EPOCH_MISMATCH`, `SEQUENCE_TOO_FAR_AHEAD`.
     */
    middleware: Middleware;
    /**
     * The sweep, which runs held messages with `handler`: what the stage has inside it. Retries of failed numbers and
     * what a crash left behind are its work, so a stage without a sweep is not complete.
     */
    sweep(handler: Handler): StreamSweep;
    /** The sweep of one stream, for the time that `wake` of the options was called with. */
    wake(handler: Handler): StreamWake;
    /**
     * Before the process ends: starts nothing any more, counts what has run, releases its streams and refuses what
     * waits. Resolves after eight seconds at the latest.
     */
    stop(): Promise<void>;
  }>;

/**
 * Throws ConfigError `INVALID_OPTION` for what is no store, and for an option that is unknown or out of range. So do
 * `middleware`, `sweep` and `wake` for a handler with a part (`dedup`, `inbox`) that begins nothing in the time of a lease.
 *
 * @example
 * const streams = orderedDelivery(firestoreStreams(new Firestore()), { lease: '30s' });
 * const handler = compose(book, [deadLettering(publisher, 'dead-letters'), streams.middleware]);
 * const sweep = streams.sweep(book); // every minute
 */
export function orderedDelivery(
  store: StreamStore & StreamAdmin,
  options: StreamOptions = {},
): OrderedDelivery {
  const policy = streamPolicy(store, options);
  const workers = streamWorkers(policy);
  /** Throws ConfigError where a part of the handler would begin nothing under the lease. */
  const fitting = (handler: Handler): Handler => {
    callable('handler', handler);
    const least = leastTimeOf(handler);
    if (least === undefined || least.milliseconds < policy.leaseMs) return handler;
    const accepted =
      `more than ${least.option} of a part of the handler (${least.milliseconds} ms), ` +
      'which runs under the lease, begins nothing with less left, and would refuse every message';
    throw refused('lease', options.lease ?? `${policy.leaseMs}ms`, accepted);
  };
  const stage =
    (next: Handler): Handler =>
    async (message, context) => {
      const { sequence } = parseDeliveryOptions(message);
      if (sequence === undefined) return next(message, context);
      return workers.deliver(message, sequence, context, next);
    };
  const [sweepWith, wakeWith] = [streamSweep(policy, workers.visit), streamWake(policy, workers.visit)];
  return {
    ...streamAdmin(policy, options.deadLetters !== undefined),
    middleware: (next) => observeStage('in_order', stage(fitting(next))),
    sweep: (handler) => sweepWith(fitting(handler)),
    wake: (handler) => wakeWith(fitting(handler)),
    stop: workers.stop,
  };
}

export type StreamWorkers = Readonly<{
  deliver(message: Message, sequence: Sequence, context: Context, next: Handler): Promise<Outcome>;
  visit: VisitStream;
  /**
   * Starts nothing any more; resolves when every stream is released and every answer is given, after eight seconds at
   * the latest.
   */
  stop(): Promise<void>;
  /** Workers in memory, busy and idle. */
  size(): number;
  busy(): number;
  /** Of messages that all workers remember. */
  bytes(): number;
}>;

/** A few kilobytes each: a document with a hundred hashes. */
const MOST_IDLE = 1_000;
/**
 * Of messages that all workers remember. Beside it there is what they work on: the deliveries that wait, which the
 * subscriber bounds, and of each stream at most one page, or one batch, of held messages.
 */
const MOST_BYTES = 32_000_000;
/** Cloud Run sends SIGKILL ten seconds after SIGTERM: https://cloud.google.com/run/docs/container-contract#instance-shutdown */
const STOP_MS = 8_000;

export function streamWorkers(policy: StreamPolicy): StreamWorkers {
  const { clock } = policy;
  const busy = new Map<string, StreamWorker>();
  // In the order in which they became idle.
  const idle = new Map<string, StreamWorker>();
  const inTurn = turns(policy.clock);
  /** Some answers come behind what their worker awaits beside its loop. */
  const unanswered = new Set<Promise<unknown>>();
  /** Bytes by worker, without those that remember none. */
  const remembered = new Map<StreamWorker, number>();
  let bytes = 0;
  let isStopping = false;

  function workerOf(ref: StreamRef): StreamWorker {
    const name = JSON.stringify([ref.consumer, ref.source, ref.key]);
    const known = busy.get(name) ?? idle.get(name);
    if (known !== undefined) return known;
    const made: StreamWorker = streamWorker(policy, ref, {
      onBusy() {
        idle.delete(name);
        busy.set(name, made);
      },
      onIdle() {
        busy.delete(name);
        idle.set(name, made);
        dropIdle();
      },
      fits(now) {
        remember(made, now);
        dropIdle();
        return bytes <= MOST_BYTES;
      },
    });
    return made;
  }

  function awaited<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const isGiven = (): void => void unanswered.delete(answer);
    unanswered.add(answer);
    answer.then(isGiven, isGiven);
    return answer;
  }

  function dropIdle(): void {
    for (const [name, worker] of idle) {
      if (idle.size <= MOST_IDLE && bytes <= MOST_BYTES) return;
      remember(worker, 0);
      idle.delete(name);
    }
  }

  function remember(worker: StreamWorker, now: number): void {
    bytes += now - (remembered.get(worker) ?? 0);
    if (now === 0) remembered.delete(worker);
    else remembered.set(worker, now);
  }

  return {
    deliver(message, { number, key, epoch }, context, next) {
      const ref = streamRef(policy, context.consumer, context.source, key);
      const arrival = { key, number, hash: contentHash(message), epoch };
      const once = (turn: Turn | undefined): Promise<Outcome | 'asksTurn'> =>
        new Promise((resolve) => {
          const worker = workerOf(ref);
          if (isStopping) void worker.stop();
          worker.deliver(delivery({ context, next, clock, turn }, arrival, message, resolve));
        });
      return awaited(inTurn(context, once).then((outcome) => outcome ?? LATE));
    },
    visit(ref, context, next) {
      const total = { taken: false, drained: 0 };
      const once = (turn: Turn | undefined): Promise<Visited | 'asksTurn'> =>
        new Promise((resolve, reject) => {
          const end = ({ taken, drained, asksTurn }: VisitEnd): void => {
            total.taken ||= taken;
            total.drained += drained;
            resolve(asksTurn ? 'asksTurn' : total);
          };
          const isTaken =
            !isStopping && workerOf(ref).visit(visit({ context, next, clock, turn }, end, reject));
          if (!isTaken) resolve(total);
        });
      return awaited(inTurn(context, once).then((visited) => visited ?? total));
    },
    async stop() {
      isStopping = true;
      const late = (): Error =>
        new TransientError('TIMED_OUT', `not every stream was released in ${STOP_MS} ms`);
      const all = [...busy.values()].map((one) => one.stop());
      await withTimeLimit(clock, STOP_MS, () => Promise.allSettled([...all, ...unanswered]), late).catch(
        () => undefined,
      );
    },
    size: () => busy.size + idle.size,
    busy: () => busy.size,
    bytes: () => bytes,
  };
}

const LATE: Outcome = retry(leaseLost('its turn did not come in the time of the delivery'));

/**
 * `run` may ask for a turn, and is then called again with one. It waits for it outside of its stream's worker, which
 * goes on answering and holding. Undefined: the turn did not come in the time of `context`.
 */
type InTurn = <Result>(
  context: VisitContext,
  run: (turn: Turn | undefined) => Promise<Result | 'asksTurn'>,
) => Promise<Result | undefined>;

function turns(clock: Clock): InTurn {
  let last: Promise<void> = Promise.resolve();

  async function enter(context: VisitContext): Promise<Turn | undefined> {
    const before = last;
    let leave = (): void => undefined;
    last = new Promise((resolve) => (leave = resolve));
    let isOver = false;
    const left = context.deadline - clock.monotonic();
    try {
      await withTimeLimit(
        clock,
        left,
        () => before,
        () => leaseLost('its turn did not come in time'),
      );
    } catch {
      void before.then(leave);
      return undefined;
    }
    return {
      isOver: () => isOver,
      end() {
        isOver = true;
        leave();
      },
    };
  }

  return async (context, run) => {
    let turn: Turn | undefined;
    for (;;) {
      try {
        const result = await run(turn);
        if (result !== 'asksTurn') return result;
      } finally {
        turn?.end();
      }
      turn = await enter(context);
      if (turn === undefined) return undefined;
    }
  };
}
