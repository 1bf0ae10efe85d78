/**
 * Wake-ups: the sweep of one stream, for what was asked to `wake` it (a message that failed is tried again when its
 * pause is over, and not when the next sweep comes), and wake-ups as tasks of a queue: what the option `wake` of
 * `orderedDelivery` asks for, and what the task brings back to its `wake`.
 *
 * A wake-up that is lost, cannot be asked for, comes twice or comes too late costs time only: the stream stays due, and
 * the sweep finds it. A crash leaves a lease that expires. A task's name is its stream and its second, so that many
 * requests for one second are one task.
 */
import { type Clock, sleep, systemClock } from '../clock.ts';
import type { Handler } from '../handler.ts';
import {
  checkOptions,
  clock as aClock,
  holding,
  log as aLog,
  name,
  required,
  sweepContext,
  taskQueue as aQueue,
  text,
} from '../options.ts';
import type { TaskQueue } from '../tasks/task-queue.ts';
import { PermanentError, textOf } from '../errors.ts';
import { hashOf } from '../hash.ts';
import { consoleLog, type Log, withoutIdentifiers } from '../log.ts';
import { closeGap, closesGaps } from './gaps.ts';
import { type StreamPolicy, streamRef } from './options.ts';
import { logFieldsOf, requestWake } from './report.ts';
import { hasLiveLease, type StreamState } from './stream-state.ts';
import type { VisitContext, VisitStream } from './mailbox.ts';

export type Woken = Readonly<{
  /**
   * `taken`: by this call. `left`: there is nothing to do, or another process or visit is at it. `unknown`: no message
   * of that stream has come.
   */
  kind: 'taken' | 'left' | 'unknown';
  /** Numbers that ran and are counted as done. */
  drained: number;
  /** Missing numbers that were published again. */
  repaired: number;
  /** Missing numbers that were skipped. */
  skipped: number;
}>;

type WokenStream = Readonly<{ source?: string; key: string }>;
/** `readWake` answers its consumer, too. */
const aStream = holding({ key: text });

/** Which stream of the context's consumer; `source` is ignored, and may be absent, with `streamScope: 'consumer'`. */
export type StreamWake = (stream: WokenStream, context: VisitContext) => Promise<Woken>;

/** The caller has a clock of its own: what is due so soon is waited for, and for the rest another call is asked. */
const EARLY_MS = 5_000;

/** It ends by the context's deadline. Rejects with `STORE_UNAVAILABLE` or `UNREADABLE_STATE` when nothing is known. */
export function streamWake(policy: StreamPolicy, visit: VisitStream): (next: Handler) => StreamWake {
  const { store, clock } = policy;
  return (next) => async (stream, context) => {
    aStream('stream', stream);
    sweepContext('context', context);
    const { source = '', key } = stream;
    const ref = streamRef(policy, context.consumer, source, key);
    let total = { drained: 0, repaired: 0, skipped: 0 };
    let [hasWaited, hasClosed] = [false, !closesGaps(policy)];
    while (true) {
      const { state, nowMs } = await store.read(ref);
      if (state === undefined) return { kind: 'unknown', ...total };
      if (!hasClosed) {
        total = { ...total, ...(await closeGap(policy, ref, state, nowMs, context)) };
        hasClosed = true;
        if (total.skipped > 0) continue;
      }
      const dueAt = dueTime(state, nowMs);
      if (dueAt === undefined) return { kind: 'left', ...total };
      if (dueAt <= nowMs) {
        const { taken, drained } = await visit(ref, context, next);
        return { ...total, kind: taken ? 'taken' : 'left', drained };
      }
      if (hasWaited || dueAt - nowMs > EARLY_MS || context.signal.aborted) {
        await requestWake(policy, context, ref, dueAt);
        return { kind: 'left', ...total };
      }
      hasWaited = true;
      await sleep(clock, dueAt - nowMs, context.signal);
    }
  };
}

/** Undefined: nothing is to be done, or the process that has the stream asks for the next visit by itself. */
function dueTime(state: StreamState, nowMs: number): number | undefined {
  if (state.blocked !== null || state.readyAt === null || hasLiveLease(state, nowMs)) return undefined;
  return Math.max(state.readyAt, state.nextTryAt);
}

export type WakeTasksOptions = Readonly<{
  /** The consumer whose streams these are. */
  consumer: string;
  /** Default: the machine's. */
  clock?: Clock;
  /** Default: warnings and errors as JSON lines on standard error. */
  log?: Log;
}>;

export type WakeTasks = Readonly<{
  /** As the option `wake` of `orderedDelivery`. Never rejects: what goes wrong is logged. Takes three seconds at most. */
  wake(stream: WakeStream, atMs: number): Promise<void>;
  /**
   * Resolves when every request until now is stored or abandoned: for a process that gets no time once it has
   * answered, as a function does.
   */
  settled(): Promise<void>;
}>;

/** Which stream of its consumer; `source` is empty where a stream spans all of them. */
export type WakeStream = Readonly<{ source: string; key: string }>;

/** Which stream is to be visited. */
export type WakeCall = Readonly<{ consumer: string }> & WakeStream;

/** Longer than a task takes to be stored, and short beside a delivery, which waits for it. */
const LIMIT_MS = 3_000;
/** A task may be 30 days ahead (https://cloud.google.com/tasks/docs/quotas); one that comes early asks for the next. */
const LONGEST_MS = 29 * 86_400_000;
const VERSION = 2;

/**
 * Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * const wakes = wakeTasks(cloudTasksQueue(client, settings), { consumer: 'shipping', clock, log });
 * const streams = orderedDelivery(store, { wake: wakes.wake });
 */
export function wakeTasks(queue: TaskQueue, options: WakeTasksOptions): WakeTasks {
  aQueue('queue', queue);
  checkOptions<WakeTasksOptions>(options, {
    consumer: required(name),
    clock: aClock,
    log: aLog,
  });
  const { consumer, clock = systemClock(), log: given = consoleLog() } = options;
  const log = withoutIdentifiers(given);
  const asked = new Set<Promise<void>>();

  const create = async ({ source, key }: WakeStream, atMs: number): Promise<void> => {
    // Rounded up: never before its time on the store's clock, as far as the queue's agrees with it.
    const second = Math.ceil(Math.min(atMs, clock.now() + LONGEST_MS) / 1_000);
    const body = Buffer.from(JSON.stringify({ v: VERSION, consumer, source, key }));
    const name = hashOf('wake', consumer, source, key, String(second));
    try {
      const limits = { deadline: clock.monotonic() + LIMIT_MS };
      await queue.create({ name, scheduleTimeMs: second * 1_000, body }, limits);
    } catch (error) {
      const fields = { ...logFieldsOf({ consumer, source, key }), error: textOf(error) };
      log.warn('in order: a wake-up could not be asked for; the sweep will do it', fields);
    }
  };

  return {
    wake(stream, atMs) {
      const creating: Promise<void> = create(stream, atMs).finally(() => asked.delete(creating));
      asked.add(creating);
      return creating;
    },
    async settled() {
      await Promise.all(asked);
    },
  };
}

/**
 * What the task of a wake-up brings. Throws PermanentError `UNREADABLE_WAKE` for anything else.
 *
 * @example
 * const { source, key } = readWake(body);
 */
export function readWake(body: Uint8Array): WakeCall {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'));
  } catch {
    throw unreadable();
  }
  if (typeof parsed !== 'object' || parsed === null) throw unreadable();
  const { v, consumer, source, key } = parsed as Readonly<Record<string, unknown>>;
  if (v !== VERSION || typeof consumer !== 'string' || typeof source !== 'string') throw unreadable();
  if (typeof key !== 'string' || key === '') throw unreadable();
  return { consumer, source, key };
}

const unreadable = (): PermanentError =>
  new PermanentError(
    'UNREADABLE_WAKE',
    `the body is no wake-up; accepted: {"v":${VERSION},"consumer":"…","source":"…","key":"…"}`,
  );
