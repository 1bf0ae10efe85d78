/**
 * What a task will carry, made of the message as it was received. Equal for every redelivery, but for the trace.
 */
import type { Context } from '../handler.ts';
import { hashOf } from '../hash.ts';
import type { Message } from '../message.ts';
import { carried } from '../telemetry/trace-context.ts';
import { delayedAttributes, type WithOurs } from './delayed-attributes.ts';
import type { Delayed } from './task-body.ts';

export type DelayedParts = Readonly<{
  key: string;
  topic: string;
  instantMs: number;
  dedupId: string;
  entry?: Delayed['entry'];
}>;

/**
 * The first attempt, not yet on its way: `scheduleTimeMs` is the instant. `plain` is its message without this delivery's
 * trace, `dropped` are attributes of ours that found no room.
 */
export function composeDelayed(
  message: Message,
  { key, topic, instantMs, dedupId, entry }: DelayedParts,
): Readonly<{ delayed: Delayed; plain: Message; dropped: readonly string[] }> {
  const { attributes, dropped } = delayedAttributes(message, dedupId, instantMs);
  const plain = { ...message, attributes };
  // The attributes of the task's message are what the next hop reads its trace from.
  const traced = { ...plain, attributes: carried({ ...plain, topic }, message.attributes).attributes };
  const start = { attempt: 0, hop: 0, scheduleTimeMs: instantMs };
  const delayed = { key, topic, instantMs, ...start, ...(entry !== undefined && { entry }), message: traced };
  return { delayed, plain, dropped };
}

/**
 * The message, not its `dedupId`: two messages of one `dedupId` are both scheduled, and whoever removes duplicates
 * sees both. The publish time keeps apart the message IDs of an emulator that starts counting anew.
 */
export const messageKey = (message: Message, context: Pick<Context, 'consumer' | 'source'>): string =>
  hashOf(context.consumer, context.source, message.id, String(message.publishTime.getTime()));

export function warnOfDropped(
  message: Message,
  context: Pick<Context, 'log'>,
  { dropped }: Pick<WithOurs, 'dropped'>,
): void {
  if (dropped.length === 0) return;
  context.log.warn('no room for attributes of the toolkit', {
    messageId: message.id,
    dropped: dropped.join(' '),
  });
}
