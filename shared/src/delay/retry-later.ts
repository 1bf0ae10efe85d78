/**
 * Retry with a pause of one's own: a handler that answers `retry` with `after` gets the message back after the pause,
 * through the delay queue and the topic that it came from. The delivery is acknowledged, so the pause uses up none of
 * the subscription's delivery attempts, and is not its backoff.
 *
 * Never lost: the task is stored before the delivery is acknowledged, and after every claim inside was released. A
 * crash in between, or a reply that is lost, runs the handler again at once; where that asks for a pause as well it
 * meets the task that is there, and where it succeeds the message still comes back once more, under the same `dedupId`.
 * When the queue cannot take it, the message is delivered again as after any other retry.
 */
import { ATTRIBUTE, LONGEST_DELAY_SECONDS } from '../attributes.ts';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import {
  codeOf,
  ConfigError,
  countsAsAttempt,
  PermanentError,
  refused,
  textOf,
  TransientError,
} from '../errors.ts';
import type { Context, Handler, Middleware } from '../handler.ts';
import { hashOf } from '../hash.ts';
import type { Message } from '../message.ts';
import { ack, deadLetter, type Outcome, retry } from '../outcome.ts';
import type { PayloadStore } from '../payload/payload-store.ts';
import { dedupIdOf, withDedupId } from '../publish/identity.ts';
import { ATTR, count } from '../telemetry/instruments.ts';
import { observeStage } from '../telemetry/stages.ts';
import { withTraceContext } from '../telemetry/trace-context.ts';
import { encodeTask } from '../tasks/claim-check.ts';
import { messageKey } from '../tasks/compose-delayed.ts';
import { MAX_TASK_BYTES, taskBytes, checkRoom } from '../tasks/task-options.ts';
import { attemptOf, rescheduledMessage } from './reschedule.ts';
import type { TaskQueue } from '../tasks/task-queue.ts';
import { scheduleTimeFor } from '../tasks/timing.ts';
import {
  checkOptions,
  clock as aClock,
  durationFrom,
  fullTopic,
  payloads as somePayloads,
  required,
  taskQueue as aQueue,
  whole,
} from '../options.ts';

export type RetryLaterOptions = Readonly<{
  /** Default: the machine's. */
  clock?: Clock;
  /** `projects/…/topics/…`: the topic of the subscription that is served here. The republisher must allow it. */
  topic: string;
  /**
   * How often the handler is started with one message at most, the first time included; then it is a dead letter,
   * `RETRIES_EXHAUSTED`. Only failures that are the message's own count. Default 100, at least 1: as many deliveries as a
   * subscription allows at most (https://cloud.google.com/pubsub/docs/dead-letter-topics).
   */
  maxAttempts?: number;
  /**
   * The pause for a message that another delivery works on (from `0ms` to ten years). Absent: it is delivered again
   * as usual.
   */
  inProgress?: Duration;
  /**
   * The pause for a message whose handler was refused because others changed each time what it had read
   * (`TRANSACTION_CONTENTION` of an inbox, `SAGA_STEP_BUSY`; from `0ms` to ten years). Absent: it is delivered again as
   * usual.
   */
  contention?: Duration;
  /** For messages that do not fit a task. Absent: they are delivered again as usual. */
  payloads?: PayloadStore;
  /** As for `delay` (default 102,400, at most 1,048,576). */
  maxTaskBytes?: number;
}>;

const MAX_ATTEMPTS = 100;
/** Ten years, as a delay on the wire. */
const LONGEST_PAUSE = `${LONGEST_DELAY_SECONDS}s` as const;

/**
 * Place it inside `deadLettering`, and outside everything that claims, holds or counts the message (`dedup`, `inbox`,
 * in-order delivery): they must see the retry, and have released the message, before it is acknowledged here. A message
 * with a `sequence` is never rescheduled, because it would be a gap. Throws ConfigError for an option that is not
 * valid.
 *
 * @example
 * const handler = guarded(book, {
 *   publisher,
 *   deadLetterTopic: 'dead-letters',
 *   retryLater: retryLater(queue, { topic: 'projects/shop/topics/orders', maxAttempts: 10, inProgress: '30s' }),
 * });
 */
export function retryLater(queue: TaskQueue, options: RetryLaterOptions): Middleware {
  aQueue('queue', queue);
  checkOptions<RetryLaterOptions>(options, {
    clock: aClock,
    topic: required(fullTopic),
    maxAttempts: whole(1),
    inProgress: durationFrom('0ms', LONGEST_PAUSE),
    contention: durationFrom('0ms', LONGEST_PAUSE),
    payloads: somePayloads,
    maxTaskBytes: taskBytes,
  });
  const {
    clock = systemClock(),
    topic,
    maxAttempts = MAX_ATTEMPTS,
    maxTaskBytes = MAX_TASK_BYTES,
    payloads,
  } = options;
  checkRoom(maxTaskBytes, queue);
  const { inProgress = '0ms', contention = '0ms' } = options;
  const pauses: Pauses = {
    inProgressMs: toMilliseconds(inProgress, 'inProgress'),
    contentionMs: toMilliseconds(contention, 'contention'),
  };

  const reschedule = async (
    message: Message,
    context: Context,
    pauseMs: number,
    attempt: number,
  ): Promise<void> => {
    // A clock that is behind must not cut the pause short: the message was published before now.
    const { publishTime, assumedPublishTime } = message;
    const publishedMs = assumedPublishTime === undefined ? publishTime.getTime() : -Infinity;
    const dueTimeMs = Math.max(clock.now(), publishedMs) + pauseMs;
    // The message, not its `dedupId`: a dead letter that is sent again begins anew, and meets no name from before.
    const key = messageKey(message, context);
    const plain = rescheduledMessage(message, context, attempt);
    const traced = withTraceContext({ ...plain, topic }, message.attributes).attributes;
    const delayed = {
      key,
      topic,
      dueTimeMs,
      scheduleTimeMs: scheduleTimeFor(dueTimeMs, clock.now()),
      attempt,
      hop: 0,
      message: { ...plain, attributes: traced },
    };
    const task = await encodeTask(delayed, { queue, payloads, maxTaskBytes, plain });
    // Without the due time, which is another one when the handler runs again: one return for one delivery.
    const name = hashOf('retry later', key, topic, String(attempt));
    const limits = { deadline: context.deadline, signal: context.signal };
    const answer = await queue.create({ ...task, name }, limits);
    context.log.info('rescheduled', { messageId: message.id, task: name, topic, dueTimeMs, attempt, answer });
  };

  const stage =
    (next: Handler): Handler =>
    async (message, context) => {
      // Before the claim inside: the message comes back with another ID, and must be the same one there.
      const received = withDedupId(message, dedupIdOf(message, context));
      const outcome = await next(received, context);
      const pauseMs = outcome.kind === 'retry' ? pauseOf(outcome, pauses) : 0;
      if (outcome.kind !== 'retry' || pauseMs === 0 || hasItsPlace(message)) return outcome;
      // No caller waits for an answer any more: the message is on its way already.
      if (context.signal.aborted) return outcome;
      // An acknowledgement would be taken for the work's end, and the message that comes back for a duplicate.
      if (context.fencingToken !== undefined) return retry(misplaced(outcome.error));
      const before = attemptOf(message);
      const isOwn = countsAsAttempt(outcome.error);
      const attempt = isOwn ? before + 1 : before;
      if (isOwn && attempt >= maxAttempts) return deadLetter(exhausted(attempt, outcome.error));
      try {
        await reschedule(received, context, pauseMs, attempt);
      } catch (error) {
        const fields = { messageId: message.id, code: codeOf(error), error: textOf(error) };
        context.log.warn('not rescheduled: it is delivered again as usual', fields);
        return outcome;
      }
      count('rescheduled', { [ATTR.consumer]: context.consumer, [ATTR.reason]: codeOf(outcome.error) });
      return ack('scheduled');
    };
  return (next) => observeStage('later', stage(next));
}

/** For failures that ask for none themselves; 0: they are delivered again as usual. */
type Pauses = Readonly<{ inProgressMs: number; contentionMs: number }>;

/** Others were in the way each time that it was tried: what they do is done once they have released it. */
const CONTENTION: ReadonlySet<string> = new Set(['TRANSACTION_CONTENTION', 'SAGA_STEP_BUSY']);

/** 0: no pause was asked for. Throws ConfigError for one that is not valid. */
function pauseOf({ error, after }: Outcome & { kind: 'retry' }, pauses: Pauses): number {
  if (after !== undefined) durationFrom('0ms', LONGEST_PAUSE)('after', after);
  return after === undefined ? askedBy(error, pauses) : toMilliseconds(after, 'after');
}

function askedBy(error: unknown, { inProgressMs, contentionMs }: Pauses): number {
  if (!(error instanceof TransientError)) return 0;
  const { code } = error;
  const ownMs = CONTENTION.has(code) ? contentionMs : 0;
  const askedMs = error.retryAfterMs ?? (code === 'IN_PROGRESS_ELSEWHERE' ? inProgressMs : ownMs);
  if (askedMs > LONGEST_DELAY_SECONDS * 1_000)
    throw refused('retryAfterMs', askedMs, `at most ${LONGEST_PAUSE}`);
  return Math.max(askedMs, 0);
}

/** In a stream, or in the record of schedules: taken out of there and sent again, it would be another message. */
const hasItsPlace = ({ attributes }: Message): boolean =>
  attributes[ATTRIBUTE.sequence] !== undefined || attributes[ATTRIBUTE.scheduleKey] !== undefined;

const misplaced = (cause: unknown): ConfigError =>
  new ConfigError(
    'RETRY_LATER_INSIDE_A_LEASE',
    'retryLater is inside a lease on the message; put it outside dedup, inbox and in-order delivery',
    { cause },
  );

const exhausted = (attempts: number, cause: unknown): PermanentError =>
  new PermanentError('RETRIES_EXHAUSTED', `failed ${attempts} times, the last time with: ${textOf(cause)}`, {
    cause,
  });
