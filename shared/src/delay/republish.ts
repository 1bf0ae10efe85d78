/**
 * What the republisher does with one task: publish its message, make the next task on the way to its instant, or
 * give it to the dead letters. The task is answered with success only after one of these is confirmed.
 *
 * A task that runs twice, or again after a crash or a lost reply, publishes the same message with the same `dedupId`,
 * and makes a next task of the same name. Nothing is lost while the queue retries; where a queue's attempts are
 * limited, the message goes to the dead letters before the last of them.
 */
import { sleep, type Clock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { codeOf, ConfigError, PermanentError, stackOf, textOf, TransientError } from '../errors.ts';
import { compose, type Context, type Handler, type Middleware } from '../handler.ts';
import { hashOf } from '../hash.ts';
import type { Log } from '../log.ts';
import { checkOutgoing, LIMITS, type Message } from '../message.ts';
import { ack, deadLetter, type Outcome, outcomeOf } from '../outcome.ts';
import { publishable } from '../publish/identity.ts';
import type { Publisher } from '../publish/publisher.ts';
import { ATTR, record } from '../telemetry/instruments.ts';
import { observedPublish, observedRepublish } from '../telemetry/stages.ts';
import { type Delayed, decodeDelayed, taskFor } from './task-body.ts';
import type { TaskQueue } from './task-queue.ts';
import { nextStep, scheduleTimeFor } from './timing.ts';
import { within } from './within.ts';

export type RepublishPorts = Readonly<{
  publisher: Publisher;
  /** For hops: the queue that the task came from. */
  queue: TaskQueue;
  /** `deadLettering(publisher, topic)`: says `published` on a dead letter that is confirmed, `retry` otherwise. */
  deadLetters: Middleware;
  clock: Clock;
  log: Log;
}>;

export type RepublishOptions = Readonly<{
  /** `projects/…/topics/…`, exactly: a task for any other topic is a permanent error. */
  allowedTopics: readonly string[];
  /** For one publish. Default 30 s; after that the task is tried again. */
  publishTimeout?: Duration;
  /** The queue's limit of attempts, where it has one. Absent: it retries without limit, as it should. */
  maxAttempts?: number;
  /** Aborted when the process is to stop: what waits then is tried again elsewhere. */
  stop?: AbortSignal;
}>;

export type TaskRequest = Readonly<{
  body: Uint8Array;
  /** See `taskHeaders`. */
  etaMs?: number;
  retryCount?: number;
}>;

/** 204: published or scheduled on. 200: given to the dead letters. 503: to be tried again. */
export type TaskAnswer = Readonly<{ status: 200 | 204 | 503 }>;

/** A timer may fire a moment before its time, and the wall clock may step back: looked at again so often, then retried. */
const LOOKS = 10;

/** Throws ConfigError for an empty list of topics and for limits that are not positive. Never rejects once running. */
export function republish(
  ports: RepublishPorts,
  options: RepublishOptions,
): (request: TaskRequest) => Promise<TaskAnswer> {
  const { publisher, queue, deadLetters, clock } = ports;
  const { allowedTopics, publishTimeout = '30s', maxAttempts, stop = new AbortController().signal } = options;
  const timeoutMs = toMilliseconds(publishTimeout, 'publishTimeout');
  if (allowedTopics.length === 0) {
    throw new ConfigError('NO_ALLOWED_TOPICS', 'allowedTopics is empty; accepted: at least one topic');
  }
  if (maxAttempts !== undefined && !(Number.isInteger(maxAttempts) && maxAttempts > 0)) {
    throw new ConfigError('INVALID_MAX_ATTEMPTS', `maxAttempts is ${maxAttempts}; accepted: 1 or more`);
  }

  const publish = async ({ topic, message, instantMs }: Delayed, log: Log): Promise<Outcome> => {
    const { data, orderingKey } = message;
    const outgoing = {
      topic,
      data,
      attributes: publishable(message.attributes),
      ...(orderingKey !== undefined && orderingKey !== '' && { orderingKey }),
    };
    checkOutgoing(outgoing);
    const messageId = await observedPublish(outgoing, message, LIMITS.messageBytes, (traced) =>
      within(clock, timeoutMs, 'the publish', publisher.publish(traced)),
    );
    const lateMs = clock.now() - instantMs;
    record('lateness', lateMs, { [ATTR.capability]: 'republish' });
    log.info('published', { topic, messageId, originId: message.id, lateMs });
    return ack();
  };

  const reschedule = async (delayed: Delayed, log: Log): Promise<Outcome> => {
    const scheduleTimeMs = scheduleTimeFor(delayed.instantMs, clock.now());
    const task = taskFor({ ...delayed, scheduleTimeMs, hop: delayed.hop + 1 });
    const answer = await queue.create(task);
    log.info('scheduled on', {
      topic: delayed.topic,
      task: task.name,
      hop: delayed.hop + 1,
      scheduleTimeMs,
      answer,
    });
    return ack('scheduled');
  };

  const run = async (delayed: Delayed, etaMs: number | undefined, log: Log): Promise<Outcome> => {
    if (!allowedTopics.includes(delayed.topic)) {
      throw new PermanentError(
        'TOPIC_NOT_ALLOWED',
        `the task is for ${delayed.topic}; accepted: ${allowedTopics.join(', ')}`,
      );
    }
    const { instantMs, scheduleTimeMs } = delayed;
    const wake = { instantMs, scheduleTimeMs, ...(etaMs !== undefined && { etaMs }) };
    for (let look = 0; look < LOOKS; look += 1) {
      const step = nextStep({ ...wake, nowMs: clock.now() });
      if (step.kind === 'publish') return publish(delayed, log);
      const pauseMs = step.kind === 'wait' ? step.milliseconds : step.restMs;
      if (pauseMs > 0) await sleep(clock, pauseMs, stop);
      if (stop.aborted) throw new TransientError('STOPPING', 'the republisher is stopping');
      if (step.kind === 'reschedule') return reschedule(delayed, log);
    }
    throw new TransientError('CLOCK_STANDS', 'the instant did not come while it was waited for');
  };

  const contextOf = (log: Log): Context => ({
    consumer: 'republisher',
    source: 'republisher',
    now: () => clock.now(),
    deadline: clock.monotonic() + timeoutMs,
    signal: stop,
    log,
  });

  return async ({ body, etaMs, retryCount = 0 }) => {
    // One attempt is left in reserve, for a dead-letter publish that fails or a crash before it.
    const isNearlyLast = maxAttempts !== undefined && retryCount + 1 >= Math.max(maxAttempts - 1, 1);
    const task = read(body);
    const handler: Handler = async (_message, context) => {
      if ('error' in task) return deadLetter(task.error);
      const outcome = await run(task.delayed, etaMs, context.log).catch(outcomeOf);
      return outcome.kind === 'retry' && isNearlyLast ? deadLetter(outcome.error) : outcome;
    };
    const message = 'error' in task ? unreadable(body, clock) : task.delayed.message;
    return observedRepublish(message, ports.log, async (traced) => {
      const outcome = await compose(handler, [deadLetters])(message, contextOf(traced));
      report(outcome, traced);
      return outcome;
    }).then(answer);
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

function report(outcome: Outcome, log: Log): void {
  if (outcome.kind === 'ack') return;
  const stack = stackOf(outcome.error);
  const fields = {
    code: codeOf(outcome.error),
    error: textOf(outcome.error),
    ...(stack !== undefined && { stack_trace: stack }),
  };
  const isGivenUp = outcome.kind === 'deadLetter' && outcome.published === true;
  if (isGivenUp) log.error('given to the dead letters', fields);
  else log.warn('to be tried again', fields);
}

function answer(outcome: Outcome): TaskAnswer {
  if (outcome.kind === 'ack') return { status: 204 };
  return { status: outcome.kind === 'deadLetter' && outcome.published === true ? 200 : 503 };
}
