/**
 * The event of a first-generation background function, `{ context, data }`, which the functions framework still
 * accepts. It names the topic but not the subscription: the source has to be configured where such events come in.
 */
import type { Message } from '../message.ts';
import { delivery, readMessage, readTime } from './envelope.ts';
import { field, type Fields, invalidBody, isFields, optionalText, shown } from './fields.ts';

export function isLegacyEvent(body: Fields): boolean {
  const { context, data } = body;
  if (!isFields(context) || !isFields(data)) return false;
  const { eventType, resource } = context;
  const service = isFields(resource) ? resource['service'] : undefined;
  return [data['@type'], eventType, service].some((text) => typeof text === 'string' && /pubsub/i.test(text));
}

export function readLegacyEvent(body: Fields, nowMs: number): Message {
  const { context, data } = body;
  if (!isFields(context)) throw invalidBody('context', `is ${shown(context)}; accepted: an object`);
  if (!isFields(data)) throw invalidBody('data', `is ${shown(data)}; accepted: an object`);
  const messageId = optionalText(field(context, 'eventId', 'event_id'), 'context.eventId');
  if (messageId === undefined) throw invalidBody('context.eventId', 'is missing; accepted: a message ID');
  const eventMs = readTime(field(context, 'timestamp'), 'context.timestamp');
  return {
    ...readMessage({ ...data, messageId }, 'data.', { nowMs, eventMs }),
    ...delivery(undefined, undefined),
  };
}
