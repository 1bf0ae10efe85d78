/**
 * The delay stage: a message that asked to be delivered later becomes a task for the republisher and is acknowledged;
 * every other goes to the next handler.
 *
 * Never early, and never lost: the message is acknowledged only once its task is stored. A crash in between, or a
 * reply that is lost, leads to the same task name again, which counts as success for as long as the queue remembers
 * names (Cloud Tasks: one hour and more). A redelivery after that, or after the instant, delivers the message a second time
 * under the same `dedupId`.
 */
import { parseWishes, refuseSchedule } from '../attributes.ts';
import type { Clock } from '../clock.ts';
import { ConfigError, PermanentError } from '../errors.ts';
import type { Context, Handler, Middleware } from '../handler.ts';
import { hashOf } from '../hash.ts';
import type { Message } from '../message.ts';
import { ack } from '../outcome.ts';
import { observedStage } from '../telemetry/stages.ts';
import { carried } from '../telemetry/trace-context.ts';
import { dedupIdOf } from '../publish/identity.ts';
import { delayedAttributes, dueAttributes, type WithOurs } from './delayed-attributes.ts';
import { type Delayed, taskFor } from './task-body.ts';
import type { TaskQueue } from './task-queue.ts';
import { isSurelyDue, scheduleTimeFor } from './timing.ts';

export type DelayOptions = Readonly<{
  clock: Clock;
  /** `projects/…/topics/…`: where the republisher publishes the message when its time has come. */
  topic: string;
  /**
   * The largest task: body, name, target and headers together. Default 102,400, because the published limits disagree
   * (100 KB in the API reference, 1 MB on the quota page). A larger message is a permanent error.
   */
  maxTaskBytes?: number;
}>;

export const MAX_TASK_BYTES = 102_400;
/** What Cloud Tasks was seen to refuse beyond: more than this is never accepted. */
const LARGEST_CAP = 1_048_576;

const TOPIC = /^projects\/[^/\s]+\/topics\/[^/\s]+$/;

/** Throws ConfigError for a topic that is not a full name, or for a cap beyond what any queue takes. */
export function delay(queue: TaskQueue, options: DelayOptions): Middleware {
  const { clock, topic, maxTaskBytes = MAX_TASK_BYTES } = options;
  if (!TOPIC.test(topic)) {
    throw new ConfigError(
      'INVALID_TOPIC',
      `topic is ${JSON.stringify(topic)}; accepted: projects/PROJECT/topics/TOPIC`,
    );
  }
  if (!Number.isInteger(maxTaskBytes) || maxTaskBytes < 1 || maxTaskBytes > LARGEST_CAP) {
    throw new ConfigError(
      'INVALID_MAX_TASK_BYTES',
      `maxTaskBytes is ${maxTaskBytes}; accepted: 1 to ${LARGEST_CAP}`,
    );
  }

  const schedule = async (
    message: Message,
    context: Context,
    instantMs: number,
    dedupId: string,
  ): Promise<void> => {
    const ours = delayedAttributes(message, dedupId, instantMs);
    warnOfDropped(message, context, ours);
    const delayed: Delayed = {
      key: keyOf(message, context),
      topic,
      instantMs,
      scheduleTimeMs: scheduleTimeFor(instantMs, clock.now()),
      attempt: 0,
      hop: 0,
      message: { ...message, attributes: ours.attributes },
    };
    const plain = taskFor(delayed);
    const traced = taskFor({ ...delayed, message: withTrace(delayed.message, topic, message) });
    // The trace never makes a task too large.
    const task = traced.body.length + queue.overheadBytes > maxTaskBytes ? plain : traced;
    const bytes = task.body.length + queue.overheadBytes;
    if (bytes > maxTaskBytes) {
      throw new PermanentError(
        'TASK_TOO_LARGE',
        `the delayed message needs a task of ${bytes} bytes; accepted: at most ${maxTaskBytes} bytes`,
      );
    }
    const answer = await queue.create(task);
    context.log.info('scheduled', { messageId: message.id, task: task.name, topic, instantMs, answer });
  };

  const stage =
    (next: Handler): Handler =>
    async (message, context) => {
      const wishes = parseWishes(message);
      refuseSchedule(wishes);
      // Before both ways: a redelivery may take the other one, and must have the same identity there.
      const dedupId = dedupIdOf(message, context);
      const instantMs = wishes.deliverAtMs;
      if (instantMs === undefined || isSurelyDue(instantMs, clock.now())) {
        const ours = dueAttributes(message, dedupId);
        warnOfDropped(message, context, ours);
        return next({ ...message, attributes: ours.attributes }, context);
      }
      await schedule(message, context, instantMs, dedupId);
      return ack('scheduled');
    };
  return (next) => observedStage('later', stage(next));
}

/** The attributes of the task's message are what the next hop reads its trace from. */
const withTrace = (delayed: Message, topic: string, received: Message): Message => ({
  ...delayed,
  attributes: carried({ ...delayed, topic }, received.attributes).attributes,
});

/**
 * The message, not its `dedupId`: two messages of one `dedupId` are both scheduled, and whoever removes duplicates
 * sees both. The publish time keeps apart the message IDs of an emulator that starts counting anew.
 */
function keyOf(message: Message, context: Context): string {
  return hashOf(context.consumer, context.source, message.id, String(message.publishTime.getTime()));
}

function warnOfDropped(message: Message, context: Context, { dropped }: WithOurs): void {
  if (dropped.length === 0) return;
  context.log.warn('no room for attributes of the toolkit', {
    messageId: message.id,
    dropped: dropped.join(' '),
  });
}
