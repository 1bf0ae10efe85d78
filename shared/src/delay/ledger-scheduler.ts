/**
 * The way through the schedule ledger: for messages with a `scheduleKey`, which can be replaced and withdrawn, and on
 * request for every delayed message.
 *
 * The entry is written before the task is created, and the message is acknowledged after both. A crash in between leads
 * to the same entry and the same task again; where the message does not come again either, the sweep creates the task.
 * Such a message never goes on directly, even when it is due: a redelivery would pass by what replaced or withdrew it.
 *
 * Content that does not fit a task is stored for the entry and its version, before the entry is written: however often the
 * message is delivered, and wherever a delivery dies, there is one copy, which the next delivery finds.
 */
import { randomUUID } from 'node:crypto';
import { ATTRIBUTE, type DeliveryOptions, without } from '../attributes.ts';
import type { Clock } from '../clock.ts';
import { PermanentError, TransientError } from '../errors.ts';
import type { Context } from '../handler.ts';
import { hashOf } from '../hash.ts';
import type { LogFields } from '../log.ts';
import type { Message } from '../message.ts';
import { ack, type Outcome } from '../outcome.ts';
import type { PayloadStore } from '../payload/payload-store.ts';
import { dedupIdOf } from '../publish/identity.ts';
import { originMsOf } from '../publish/origin.ts';
import {
  cancelByMessage,
  type Decision,
  lookByMessage,
  markRefused,
  scheduleByMessage,
  type Scheduled,
  scheduleStored,
} from '../schedules/decide.ts';
import { enqueue } from '../schedules/enqueue.ts';
import { type Entry, entryId, MAX_ENTRY_BYTES, type ScheduleRef, type Version } from '../schedules/entry.ts';
import type { Ledger } from '../schedules/ledger.ts';
import { ATTR, count } from '../telemetry/instruments.ts';
import { payloadRefOf, withinLimit, type TaskEncoding, offload } from '../tasks/claim-check.ts';
import { composeDelayed, messageKey, warnOfDropped } from '../tasks/compose-delayed.ts';
import type { Delayed } from '../tasks/task-body.ts';
import type { TaskQueue } from '../tasks/task-queue.ts';

export type LedgerSchedulerParts = Readonly<{
  ledger: Ledger;
  clock: Clock;
  topic: string;
  maxTaskBytes: number;
  payloads?: PayloadStore | undefined;
  newGeneration?: () => string;
}>;

type Asked = Parameters<typeof scheduleByMessage>[0];

/** Of a message whose other deliveries are refused by the queue at the same time. */
const ROUNDS = 3;

export type LedgerScheduler = (
  message: Message,
  context: Context,
  deliveryOptions: DeliveryOptions,
) => Promise<Outcome>;

/** Rejects with what the ledger, the payload store and the queue reject with. */
export function ledgerScheduler(queue: TaskQueue, parts: LedgerSchedulerParts): LedgerScheduler {
  const { ledger, clock, topic, payloads, newGeneration = randomUUID } = parts;
  const maxTaskBytes = Math.min(parts.maxTaskBytes, MAX_ENTRY_BYTES);

  const cancel = async (message: Message, context: Context, ref: ScheduleRef): Promise<Outcome> => {
    const asked = { ref, version: versionOf(message), generation: newGeneration() };
    const { answer, released } = await ledger.change(entryId(ref), cancelByMessage(asked));
    if (released !== undefined) await payloads?.done(released);
    countAndLog(context, answer, { messageId: message.id });
    return ack(answer === 'cancelled' ? 'cancelled' : 'stale');
  };

  const create = async (entry: Entry, context: Context): Promise<string> => {
    try {
      const limits = { deadline: context.deadline, signal: context.signal };
      const { task } = await enqueue(queue, clock, entry, limits);
      return task;
    } catch (error) {
      if (error instanceof PermanentError) {
        // It becomes a dead letter, and the sweep must not try for ever.
        const { answer, released } = await ledger.change(entryId(entry.ref), markRefused(entry));
        if (answer === 'refused')
          count('schedules', { [ATTR.consumer]: context.consumer, [ATTR.answer]: answer });
        await free(payloads, released);
      }
      throw error;
    }
  };

  /** As `scheduleByMessage`; what it stores and is not needed after all is among what it releases. */
  const scheduleLarge = async (
    id: string,
    asked: Asked,
    encoding: TaskEncoding & Readonly<{ plain: Message }>,
  ): Promise<Decision<Scheduled>> => {
    const { version, delayed } = asked;
    const ownerAfter = (after: string): string =>
      hashOf('entry', id, topic, String(version.atMs), version.id, after);
    for (let round = 0; round < ROUNDS; round += 1) {
      const { answer: look } = await ledger.change(id, lookByMessage(asked));
      // A delivery that died before the entry may have stored it.
      if (look === 'stale')
        return { answer: look, released: payloadRefOf(delayed, ownerAfter(''), encoding.plain) };
      if (look === 'settled' || look.kind === 'enqueue') return { answer: look };
      const { after } = look;
      const ready = await offload(delayed, { ...encoding, owner: ownerAfter(after) });
      const decision = await ledger.change(id, scheduleStored({ ...asked, delayed: ready }, after));
      const { answer, ...rest } = decision;
      if (answer === 'again') continue;
      const unused = await unusedOf(id, ready.payload, answer);
      return { answer, ...rest, ...(unused !== undefined && { released: unused }) };
    }
    throw new TransientError('SCHEDULE_CONTENTION', 'other deliveries of the message were refused each time');
  };

  /** The content that was stored, where nothing refers to it. */
  const unusedOf = async (
    id: string,
    stored: Delayed['payload'],
    answer: Scheduled,
  ): Promise<Delayed['payload']> => {
    if (answer === 'stale') return stored;
    const { entry } = answer === 'settled' ? await ledger.read(id) : answer;
    return entry?.delayed?.payload?.id === stored?.id ? undefined : stored;
  };

  const schedule = async (
    message: Message,
    context: Context,
    ref: ScheduleRef,
    dueTimeMs: number,
  ): Promise<Outcome> => {
    const id = entryId(ref);
    const generation = newGeneration();
    const dedupId = dedupIdOf(message, context);
    const unkeyed = { ...message, attributes: without(message.attributes, [ATTRIBUTE.scheduleKey]) };
    const composed = composeDelayed(unkeyed, {
      key: id,
      topic,
      dueTimeMs,
      dedupId,
      entry: { id, generation },
    });
    warnOfDropped(message, context, composed);
    // Before the entry: what is too large is refused before anything is written to the ledger.
    const encoding = { queue, payloads, maxTaskBytes, plain: composed.plain };
    const asked = { ref, version: versionOf(message), generation, delayed: composed.delayed };
    const small = withinLimit(composed.delayed, encoding);
    const { answer, released, replaced } =
      small === undefined
        ? await scheduleLarge(id, asked, encoding)
        : await ledger.change(id, scheduleByMessage({ ...asked, delayed: small }));
    await free(payloads, released);
    const current = typeof answer === 'string' ? undefined : answer.entry;
    if (current === undefined) {
      countAndLog(context, 'stale', { messageId: message.id });
      return ack(answer === 'settled' ? 'duplicate' : 'stale');
    }
    const task = await create(current, context);
    if (replaced) count('schedules', { [ATTR.consumer]: context.consumer, [ATTR.answer]: 'replaced' });
    countAndLog(context, 'scheduled', {
      messageId: message.id,
      task,
      topic,
      dueTimeMs: current.dueTimeMs ?? dueTimeMs,
    });
    return ack('scheduled');
  };

  return (message, context, { scheduleKey, cancel: isCancel, deliverAtMs }) => {
    const { consumer, source } = context;
    if (scheduleKey === undefined) {
      const ref = { consumer, source, identity: messageKey(message, context) };
      return schedule(message, context, ref, deliverAtMs ?? message.publishTime.getTime());
    }
    const ref = { consumer, source, key: scheduleKey };
    if (isCancel) return cancel(message, context, ref);
    // Without a delay it is due when it was published: the same time in every delivery of it.
    return schedule(message, context, ref, deliverAtMs ?? message.publishTime.getTime());
  };
}

/**
 * The earlier of the first publish and this one. A dead letter that is sent again has the place that it had, and what was
 * asked for since then counts; and no publisher can claim a place in the future.
 */
const versionOf = ({ id, publishTime, attributes }: Message): Version => ({
  atMs: Math.min(publishTime.getTime(), originMsOf(attributes) ?? Infinity),
  id,
});

async function free(payloads: PayloadStore | undefined, payload: Delayed['payload']): Promise<void> {
  if (payload !== undefined) await payloads?.done(payload);
}

function countAndLog(context: Context, answer: string, fields: LogFields): void {
  count('schedules', { [ATTR.consumer]: context.consumer, [ATTR.answer]: answer });
  context.log.info(answer, fields);
}
