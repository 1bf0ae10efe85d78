/**
 * Wake-ups as tasks of a queue: what the option `wake` of `orderedDelivery` asks for, and what the task brings back to
 * its `wake`.
 *
 * A task's name is its stream and its second, so that many requests for one second are one task. A task that cannot be
 * made, or is lost, costs time only: the sweep finds what is due.
 */
import {
  checkOptions,
  clock as aClock,
  log as aLog,
  required,
  taskQueue as aQueue,
  text,
} from '../options.ts';
import type { Clock } from '../clock.ts';
import type { TaskQueue } from '../tasks/task-queue.ts';
import { PermanentError, textOf } from '../errors.ts';
import { hashOf } from '../hash.ts';
import { type Log, withoutIdentifiers } from '../log.ts';
import { named } from './report.ts';

export type WakeTasksOptions = Readonly<{
  /** The consumer whose streams these are. */
  consumer: string;
  clock: Clock;
  log: Log;
}>;

export type WakeTasks = Readonly<{
  /** As the option `wake` of `orderedDelivery`. Never rejects: what goes wrong is logged. Takes three seconds at most. */
  wake(stream: WakeStream, atMs: number): Promise<void>;
  /**
   * Resolves when what was asked for until now is stored or given up: for a process that gets no time once it has
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
    consumer: required(text),
    clock: required(aClock),
    log: required(aLog),
  });
  const { consumer, clock } = options;
  const log = withoutIdentifiers(options.log);
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
      const fields = { ...named({ consumer, source, key }), error: textOf(error) };
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

/** What the task of a wake-up brings. Throws PermanentError `UNREADABLE_WAKE` for anything else. */
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
