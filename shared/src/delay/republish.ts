/**
 * What the republisher does with one task: publish its message, make the next task on the way to its due time, or
 * give it to the dead letters. The task is answered with success only after one of these is confirmed.
 *
 * A task that runs twice, or again after a crash or a lost reply, publishes the same message with the same `dedupId`,
 * and makes a next task of the same name. Nothing is lost while the queue retries. Where a queue's attempts are limited,
 * a message that fails goes to the dead letters before the last of them, and one whose topic, project or store fails
 * gets another task.
 */
import { contextFor } from '../context.ts';
import { sleep, type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { parseDeliveryOptions } from '../attributes.ts';
import { codeOf, faultOf, refused, textOf, TransientError } from '../errors.ts';
import { compose, type Context, type Middleware } from '../handler.ts';
import { hashOf } from '../hash.ts';
import { consoleLog, type Log } from '../log.ts';
import { checkOutgoing, LIMITS, type Message } from '../message.ts';
import { ack, deadLetter, type Outcome, outcomeOf, retry } from '../outcome.ts';
import type { PayloadStore } from '../payload/payload-store.ts';
import { publishable } from '../publish/identity.ts';
import type { Publisher } from '../publish/publisher.ts';
import { schemaAttributes } from '../publish/schema.ts';
import type { Ledger } from '../schedules/ledger.ts';
import { ATTR, count, record } from '../telemetry/instruments.ts';
import { observePublish, observeRepublish } from '../telemetry/stages.ts';
import { firing } from './fire.ts';
import { answer, NOT_ALLOWED, report, type TaskAnswer } from './task-answer.ts';
import { type Delayed, decodeDelayed, taskFor } from '../tasks/task-body.ts';
import type { TaskQueue } from '../tasks/task-queue.ts';
import { nextStep, scheduleTimeFor } from '../tasks/timing.ts';
import { isPayloadLost, messageLoader } from './message-loader.ts';
import { withTimeLimit, noAnswer } from '../async/time-limit.ts';
import {
  callable,
  checkOptions,
  clock as aClock,
  durationFrom,
  fullTopic,
  ledger as aLedger,
  listOf,
  log as aLog,
  payloads as somePayloads,
  publisher as aPublisher,
  required,
  signal,
  taskQueue as aQueue,
  whole,
} from '../options.ts';

export type RepublishPorts = Readonly<{
  /** Publishes the messages whose time has come. */
  publisher: Publisher;
  /** For hops: the queue that the task came from. */
  queue: TaskQueue;
  /** `deadLettering(publisher, topic)`: says `published` on a dead letter that is confirmed, `retry` otherwise. */
  deadLetters: Middleware;
}>;

export type RepublishOptions = Readonly<{
  /** Default: the machine's. */
  clock?: Clock;
  /** Default: warnings and errors as JSON lines on standard error. */
  log?: Log;
  /**
   * Where messages are that are larger than a task: the stage's own payload store. Absent: such a task is tried
   * again.
   */
  payloads?: PayloadStore;
  /** The stage's own. Absent: a task that belongs to an entry of it is tried again. */
  ledger?: Ledger;
  /**
   * `projects/…/topics/…`, exactly. For any other topic nothing is published, dead letters included: a caller that
   * may make a task must not choose what is written where. The task stays in its queue until the list is corrected.
   */
  allowedTopics: readonly string[];
  /**
   * Bound on one publish (default `30s`, at least `1ms`; with a ledger 30 s is also the most, because its
   * leases assume that). After it the task is tried again.
   */
  publishTimeout?: Duration;
  /**
   * How often the queue starts a task at most, the first time included, where it has a limit (at least 1). Absent:
   * without limit, as it should.
   */
  maxAttempts?: number;
  /** Aborted when the process is to stop: what waits then is tried again elsewhere (default: never). */
  stop?: AbortSignal;
}>;

export type TaskRequest = Readonly<{
  body: Uint8Array;
  /** See `taskHeaders`. */
  etaMs?: number;
  retryCount?: number;
}>;

/** A timer may fire a moment before its time, and the wall clock may step back: looked at again so often, then retried. */
const LOOKS = 10;

/** Before a task that takes another's place wakes: longer than the queue's first pauses between its attempts. */
const REPLACED_PAUSE_MS = 60_000;

/**
 * Throws ConfigError for an empty list of topics and for limits that are not positive. Never rejects once running.
 *
 * @example
 * const run = republish(
 *   { publisher, queue, deadLetters: deadLettering(publisher, 'dead-letters') },
 *   { allowedTopics: ['projects/shop/topics/orders'], payloads, ledger },
 * );
 * const { status } = await run({ body, ...taskHeaders({}) });
 */
export function republish(
  ports: RepublishPorts,
  options: RepublishOptions,
): (request: TaskRequest) => Promise<TaskAnswer> {
  checkOptions<RepublishPorts>(
    ports,
    {
      publisher: required(aPublisher),
      queue: required(aQueue),
      deadLetters: required(callable),
    },
    'ports',
  );
  checkOptions<RepublishOptions>(options, {
    clock: aClock,
    log: aLog,
    payloads: somePayloads,
    ledger: aLedger,
    allowedTopics: required(listOf(fullTopic, 'a list of topics')),
    publishTimeout: durationFrom('1ms'),
    maxAttempts: whole(1),
    stop: signal,
  });
  const { publisher, queue, deadLetters } = ports;
  const { clock = systemClock(), log: given = consoleLog(), payloads, ledger } = options;
  const { allowedTopics, publishTimeout = '30s', maxAttempts, stop = new AbortController().signal } = options;
  const timeoutMs = toMilliseconds(publishTimeout, 'publishTimeout');
  const messages = messageLoader(payloads);
  const schedules = firing(ledger, clock, timeoutMs);
  if (allowedTopics.length === 0) throw refused('allowedTopics', allowedTopics, 'at least one topic');

  const publish = async ({ topic, message, dueTimeMs }: Delayed, log: Log): Promise<void> => {
    const { data, orderingKey } = message;
    const ready = {
      topic,
      data,
      attributes: { ...publishable(message.attributes), ...schemaAttributes(message.attributes) },
      ...(orderingKey !== undefined && orderingKey !== '' && { orderingKey }),
    };
    checkOutgoing(ready);
    const messageId = await observePublish(ready, message, LIMITS.messageBytes, (traced) =>
      withTimeLimit(
        clock,
        timeoutMs,
        () => publisher.publish(traced),
        () => noAnswer('the publish', timeoutMs),
      ),
    );
    // A due time that was over when it was asked for makes nothing late.
    const lateMs = clock.now() - Math.max(dueTimeMs, message.publishTime.getTime());
    record('lateness', lateMs, { [ATTR.capability]: 'republish' });
    log.info('published', { topic, messageId, originId: message.id, lateMs });
  };

  const loadAndPublish = async (delayed: Delayed, log: Log): Promise<Outcome> => {
    const fired = await schedules.fire(delayed, log);
    if (fired !== undefined) {
      const loaded = await messages.load(delayed, log);
      fired.assertLease();
      if (loaded !== undefined) await publish(loaded, log);
      await fired.delivered();
    }
    await messages.done(delayed, log);
    return ack(fired === undefined ? 'stale' : undefined);
  };

  const next = async (delayed: Delayed, scheduleTimeMs: number, log: Log): Promise<Outcome> => {
    const hop = delayed.hop + 1;
    const task = taskFor({ ...delayed, scheduleTimeMs, hop });
    const answer = await queue.create(task, { signal: stop });
    count('hops', { [ATTR.capability]: 'republish' });
    log.info('scheduled on', { topic: delayed.topic, task: task.name, hop, scheduleTimeMs, answer });
    return ack('scheduled');
  };

  const reschedule = async (delayed: Delayed, etaMs: number | undefined, log: Log): Promise<Outcome> => {
    if (!(await schedules.isCurrent(delayed, log))) {
      await messages.done(delayed, log);
      return ack('stale');
    }
    // The queue's clock has come to the time of the task. One of this process that is far ahead would ask for more than
    // the queue takes.
    const nowMs = Math.min(clock.now(), etaMs ?? delayed.scheduleTimeMs);
    return next(delayed, scheduleTimeFor(delayed.dueTimeMs, nowMs), log);
  };

  const run = async (delayed: Delayed, etaMs: number | undefined, log: Log): Promise<Outcome> => {
    // What no stage would have taken is not published from a task either.
    parseDeliveryOptions(delayed.message);
    if (!allowedTopics.includes(delayed.topic)) {
      throw new TransientError(
        NOT_ALLOWED,
        `the task is for ${delayed.topic}; accepted: ${allowedTopics.join(', ')}`,
      );
    }
    const { dueTimeMs, scheduleTimeMs } = delayed;
    const wake = { dueTimeMs, scheduleTimeMs, ...(etaMs !== undefined && { etaMs }) };
    for (let look = 0; look < LOOKS; look += 1) {
      const step = nextStep({ ...wake, nowMs: clock.now() });
      if (step.kind === 'publish') return loadAndPublish(delayed, log);
      const pauseMs = step.kind === 'wait' ? step.milliseconds : step.restMs;
      if (pauseMs > 0) await sleep(clock, pauseMs, stop);
      if (stop.aborted) throw new TransientError('STOPPING', 'the republisher is stopping');
      if (step.kind === 'reschedule') return reschedule(delayed, etaMs, log);
    }
    throw new TransientError('DUE_TIME_NOT_REACHED', 'the due time did not come while it was waited for');
  };

  // A dead letter says through which subscription its message came, as far as the task tells.
  const contextOf = (log: Log, { subscription }: Message): Context =>
    contextFor(clock, {
      consumer: 'republisher',
      ...(subscription !== undefined && { source: subscription }),
      deadline: clock.monotonic() + timeoutMs,
      signal: stop,
      log,
    });

  /** `published` once it is confirmed, else a retry. */
  const publishDeadLetter = (message: Message, error: unknown, log: Log): Promise<Outcome> =>
    compose(async () => deadLetter(error), [deadLetters])(message, contextOf(log, message));

  /** Where the payload is lost, or the store is down on the last attempt, the dead letter holds what the task has. */
  const loadAndDeadLetter = async (
    delayed: Delayed,
    error: unknown,
    log: Log,
    isLast: boolean,
  ): Promise<Outcome> => {
    let loaded: Delayed | undefined = delayed;
    try {
      loaded = await messages.load(delayed, log);
    } catch (failure) {
      if (!isLast && !isPayloadLost(failure)) return retry(failure);
    }
    if (loaded === undefined) return ack();
    const outcome = await publishDeadLetter(loaded.message, error, log);
    if (outcome.kind !== 'deadLetter' || outcome.published !== true) return outcome;
    await schedules.deadLettered(delayed);
    if (loaded !== delayed) await messages.done(delayed, log);
    return outcome;
  };

  /** The queue gives the task up soon, for nothing that the message has done: another task takes its place. */
  const replace = async (delayed: Delayed, log: Log): Promise<Outcome | undefined> => {
    try {
      return await next(delayed, clock.now() + REPLACED_PAUSE_MS, log);
    } catch (error) {
      const fields = { topic: delayed.topic, code: codeOf(error), error: textOf(error) };
      log.warn('the task could not be replaced before its last attempt', fields);
      return undefined;
    }
  };

  const handle = async (
    delayed: Delayed,
    etaMs: number | undefined,
    log: Log,
    isLast: boolean,
  ): Promise<Outcome> => {
    const outcome = await run(delayed, etaMs, log).catch(outcomeOf);
    if (outcome.kind === 'ack') return outcome;
    if (outcome.kind === 'deadLetter') return loadAndDeadLetter(delayed, outcome.error, log, isLast);
    // What is in the ledger is not lost with its task: the sweep makes another.
    if (!isLast || delayed.entry !== undefined) return outcome;
    const other = faultOf(outcome.error) === 'message' ? undefined : await replace(delayed, log);
    return other ?? loadAndDeadLetter(delayed, outcome.error, log, isLast);
  };

  return async ({ body, etaMs, retryCount = 0 }) => {
    // One attempt is left in reserve, for a dead-letter publish that fails or a crash before it.
    const isNearlyLast = maxAttempts !== undefined && retryCount + 1 >= Math.max(maxAttempts - 1, 1);
    const task = read(body);
    const message = 'error' in task ? unreadable(body, clock) : task.delayed.message;
    const outcome = await observeRepublish(message, given, async (log) => {
      const work =
        'error' in task
          ? publishDeadLetter(message, task.error, log)
          : handle(task.delayed, etaMs, log, isNearlyLast).catch(outcomeOf);
      const said = await work;
      report(said, log);
      return said;
    });
    return answer(outcome);
  };
}

function read(body: Uint8Array): Readonly<{ delayed: Delayed }> | Readonly<{ error: unknown }> {
  try {
    return { delayed: decodeDelayed(body) };
  } catch (error) {
    return { error };
  }
}

/** What came, whole, so that the dead letter holds everything there is; named after it, so that a repeat is known. */
function unreadable(body: Uint8Array, clock: Clock): Message {
  return {
    id: hashOf(body),
    data: Buffer.from(body),
    attributes: {},
    publishTime: new Date(clock.now()),
  };
}
