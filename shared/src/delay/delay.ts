/**
 * The delay stage: a message that asked to be delivered later becomes a task for the republisher and is acknowledged;
 * every other goes to the next handler.
 *
 * A message whose time seems to be over goes on at once only when Pub/Sub's clock says so too (timing.ts); otherwise it
 * becomes a task all the same, and the queue's clock decides.
 *
 * Never early, and never lost: the message is acknowledged only once its task is stored. A crash in between, or a
 * reply that is lost, leads to the same task name again, which counts as success for as long as the queue remembers
 * names (Cloud Tasks: one hour and more). A redelivery after that, or after the due time, delivers the message a second
 * time under the same `dedupId`; where the message has an entry in the schedule ledger it does not
 * (ledger-scheduler.ts).
 */
import { parseDeliveryOptions, refuseSchedule, type DeliveryOptions } from '../attributes.ts';
import { type Clock, systemClock } from '../clock.ts';
import { refused } from '../errors.ts';
import type { Context, Handler, Middleware } from '../handler.ts';
import type { Message } from '../message.ts';
import { ack } from '../outcome.ts';
import { observeStage } from '../telemetry/stages.ts';
import type { PayloadStore } from '../payload/payload-store.ts';
import { dedupIdOf } from '../publish/identity.ts';
import type { Ledger } from '../schedules/ledger.ts';
import { encodeTask } from '../tasks/claim-check.ts';
import { MAX_TASK_BYTES, taskBytes, checkRoom } from '../tasks/task-options.ts';
import { composeDelayed, composeDue, messageKey, warnOfDropped } from '../tasks/compose-delayed.ts';
import { ledgerScheduler } from './ledger-scheduler.ts';
import type { TaskQueue } from '../tasks/task-queue.ts';
import { agreedTime, scheduleTimeFor } from '../tasks/timing.ts';
import {
  checkOptions,
  clock as aClock,
  fullTopic,
  ledger as aLedger,
  oneOf,
  payloads as somePayloads,
  required,
  taskQueue as aQueue,
} from '../options.ts';

export type DelayOptions = Readonly<{
  /** Default: the machine's. */
  clock?: Clock;
  /** `projects/…/topics/…`: where the republisher publishes the message when its time has come. */
  topic: string;
  /**
   * The largest task in bytes: body, name, target and headers together (default 102,400, more than what the queue
   * adds to each, at most 1,048,576). The published limits disagree (100 KB in the API reference, 1 MB on the quota
   * page, https://cloud.google.com/tasks/docs/quotas), so the default is the smaller one. A larger message goes to
   * the payload store.
   */
  maxTaskBytes?: number;
  /** Where messages wait that are larger than a task; the republisher's is the same. Absent: a permanent error. */
  payloads?: PayloadStore;
  /** Keeps what can be replaced and cancelled; the republisher's is the same. Absent: `scheduleKey` is a permanent error. */
  ledger?: Ledger;
  /**
   * Which messages have an entry in the ledger: those with a `scheduleKey` (`keys`, the default), or every message that
   * asks for a delay (`all`), so that the sweep puts back what is lost from the queue.
   */
  ledgerFor?: 'keys' | 'all';
}>;

/**
 * Throws ConfigError for a topic that is not a full name, or for a cap beyond what any queue takes.
 *
 * @example
 * const later = delay(queue, { topic: 'projects/shop/topics/orders', payloads, ledger });
 * const handler = guarded(book, { publisher, deadLetterTopic: 'dead-letters', later });
 */
export function delay(queue: TaskQueue, options: DelayOptions): Middleware {
  aQueue('queue', queue);
  checkOptions<DelayOptions>(options, {
    clock: aClock,
    topic: required(fullTopic),
    maxTaskBytes: taskBytes,
    payloads: somePayloads,
    ledger: aLedger,
    ledgerFor: oneOf('keys', 'all'),
  });
  const {
    clock = systemClock(),
    topic,
    payloads,
    maxTaskBytes = MAX_TASK_BYTES,
    ledger,
    ledgerFor = 'keys',
  } = options;
  checkRoom(maxTaskBytes, queue);
  if (ledger === undefined && options.ledgerFor !== undefined)
    throw refused('ledgerFor', ledgerFor, 'only together with ledger, without which nothing has an entry');

  const viaLedger =
    ledger === undefined
      ? undefined
      : ledgerScheduler(queue, { ledger, clock, topic, maxTaskBytes, payloads });
  const isLedgered = ({ scheduleKey, deliverAtMs }: DeliveryOptions): boolean =>
    scheduleKey !== undefined || (ledgerFor === 'all' && deliverAtMs !== undefined);

  const time = agreedTime(clock);

  const schedule = async (
    message: Message,
    context: Context,
    dueTimeMs: number,
    dedupId: string,
  ): Promise<void> => {
    const composed = composeDelayed(message, {
      key: messageKey(message, context),
      topic,
      dueTimeMs,
      dedupId,
    });
    warnOfDropped(message, context, composed);
    // A clock that is far ahead would ask for more than the queue takes.
    const scheduleTimeMs = scheduleTimeFor(dueTimeMs, time.nowMs() ?? clock.now());
    const encoding = { queue, payloads, maxTaskBytes, plain: composed.plain };
    const task = await encodeTask({ ...composed.delayed, scheduleTimeMs }, encoding);
    const answer = await queue.create(task, { deadline: context.deadline, signal: context.signal });
    context.log.info('scheduled', { messageId: message.id, task: task.name, topic, dueTimeMs, answer });
  };

  const stage =
    (next: Handler): Handler =>
    async (message, context) => {
      time.saw(message);
      const deliveryOptions = parseDeliveryOptions(message);
      if (viaLedger === undefined) refuseSchedule(deliveryOptions);
      else if (isLedgered(deliveryOptions)) return viaLedger(message, context, deliveryOptions);
      // Before both ways: a redelivery may take the other one, and must have the same identity there.
      const dedupId = dedupIdOf(message, context);
      const dueTimeMs = deliveryOptions.deliverAtMs;
      if (dueTimeMs === undefined || dueTimeMs <= (time.nowMs() ?? -Infinity)) {
        const due = composeDue(message, dedupId);
        warnOfDropped(message, context, due);
        return next(due.message, context);
      }
      await schedule(message, context, dueTimeMs, dedupId);
      return ack('scheduled');
    };
  return (next) => observeStage('later', stage(next));
}
