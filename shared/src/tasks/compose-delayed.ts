/**
 * What a task will carry, made of the message as it was received. Equal for every redelivery, but for the trace.
 */
import { ATTRIBUTE, without } from '../attributes.ts';
import type { Context } from '../handler.ts';
import { hashOf } from '../hash.ts';
import type { Message } from '../message.ts';
import { annotate, type Annotated, outgoing } from '../publish/annotate.ts';
import { withDedupId, publishable } from '../publish/identity.ts';
import { originOf } from '../publish/origin.ts';
import { schemaAttributes } from '../publish/schema.ts';
import { withTraceContext } from '../telemetry/trace-context.ts';
import type { Delayed } from './task-body.ts';

/** An option is removed from the message once it is applied. */
const ASKED = [ATTRIBUTE.delay, ATTRIBUTE.deliverAt];

/**
 * A message that is due now: without what it asked for, and named, so that a redelivery that goes through a task is
 * recognised as the same message. `dropped` is its name where it found no room; such a message fits no task either.
 */
export function composeDue(
  message: Message,
  dedupId: string,
): Readonly<{ message: Message; dropped: readonly string[] }> {
  const due = withDedupId({ ...message, attributes: without(message.attributes, ASKED) }, dedupId);
  const dropped = due.attributes[ATTRIBUTE.dedupId] === undefined ? [ATTRIBUTE.dedupId] : [];
  return { message: due, dropped };
}

export type DelayedParts = Readonly<{
  key: string;
  topic: string;
  dueTimeMs: number;
  dedupId: string;
  entry?: Delayed['entry'];
}>;

/**
 * The first attempt, not yet on its way: `scheduleTimeMs` is the due time. `plain` is its message without this
 * delivery's trace, `dropped` are attributes of ours that found no room.
 */
export function composeDelayed(
  message: Message,
  { key, topic, dueTimeMs, dedupId, entry }: DelayedParts,
): Readonly<{ delayed: Delayed; plain: Message; dropped: readonly string[] }> {
  const {
    message: { attributes },
    dropped,
  } = annotated(message, dedupId, dueTimeMs);
  const plain = { ...message, attributes };
  // The attributes of the task's message are what the next hop reads its trace from.
  const traced = {
    ...plain,
    attributes: withTraceContext({ ...plain, topic }, message.attributes).attributes,
  };
  const start = { attempt: 0, hop: 0, scheduleTimeMs: dueTimeMs };
  const delayed = { key, topic, dueTimeMs, ...start, ...(entry !== undefined && { entry }), message: traced };
  return { delayed, plain, dropped };
}

/**
 * Removing what was asked leaves room for one attribute more, but at the size limit not for its bytes: then the identity
 * is what is left out last, and a repeat of this message is not recognised.
 */
function annotated(message: Message, dedupId: string, dueTimeMs: number): Annotated {
  const { attributes } = message;
  const isNamed = attributes[ATTRIBUTE.dedupId] !== undefined;
  const theirs = without(publishable(attributes), [
    ...ASKED,
    ATTRIBUTE.deliveredAfter,
    ATTRIBUTE.originPublishTime,
  ]);
  return annotate(outgoing('-', message, theirs), [
    isNamed ? {} : { [ATTRIBUTE.dedupId]: dedupId },
    schemaAttributes(attributes),
    { [ATTRIBUTE.deliveredAfter]: new Date(dueTimeMs).toISOString() },
    originOf(attributes, message),
  ]);
}

/**
 * The message, not its `dedupId`: two messages of one `dedupId` are both scheduled, and the stage that removes duplicates
 * sees both. The publish time keeps apart the message IDs of an emulator that starts counting anew.
 */
export const messageKey = (message: Message, context: Pick<Context, 'consumer' | 'source'>): string =>
  hashOf(context.consumer, context.source, message.id, String(message.publishTime.getTime()));

export function warnOfDropped(
  message: Message,
  context: Pick<Context, 'log'>,
  { dropped }: Pick<Annotated, 'dropped'>,
): void {
  if (dropped.length === 0) return;
  context.log.warn('no room for attributes of the toolkit', {
    messageId: message.id,
    dropped: dropped.join(' '),
  });
}
