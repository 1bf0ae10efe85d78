/**
 * The messages of Google's client for Pub/Sub: read into a Message, and answered.
 */
import type { Message as ClientMessage, Subscription } from '@google-cloud/pubsub';
import { codeOf, textOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Message } from '../message.ts';
import { delivery } from './envelope.ts';
import { publishTimeOf } from './publish-time.ts';

/** Waits for the service's answer where the subscription is exactly-once; elsewhere the client answers at once. */
export async function answer(received: ClientMessage, isDone: boolean, log: Log): Promise<void> {
  try {
    await (isDone ? received.ackWithResponse() : received.nackWithResponse());
  } catch (error) {
    log.warn('an answer was refused: the message comes again', {
      messageId: received.id,
      answer: isDone ? 'ack' : 'nack',
      code: codeOfClient(error),
      error: textOf(error),
    });
  }
}

/** `nowMs`, the wall clock, stands in for a publish time that the server did not send. */
export function toMessage(received: ClientMessage, subscription: string, nowMs: number): Message {
  const { id, orderingKey, publishTime } = received;
  const isFiner = publishTime.getMicroseconds() > 0 || publishTime.getNanoseconds() > 0;
  return {
    id,
    data: Buffer.from(received.data),
    attributes: { ...received.attributes },
    // A time that was not sent is the epoch to the client, or no time at all.
    ...publishTimeOf([publishTime.getTime() + (isFiner ? 1 : 0)], nowMs),
    ...(orderingKey !== undefined && orderingKey !== '' && { orderingKey }),
    ...delivery(received.deliveryAttempt, subscription),
  };
}

/** A short name is completed with the project, which the client knows once a message has come. */
export const nameOf = (subscription: Subscription): string =>
  subscription.name.replace('{{projectId}}', subscription.pubsub.projectId);

/** The client's errors have a number of gRPC or, for acks, a word. */
export function codeOfClient(error: unknown): string {
  if (typeof error !== 'object' || error === null) return codeOf(error);
  if ('errorCode' in error) return String(error.errorCode);
  return 'code' in error ? String(error.code) : codeOf(error);
}
