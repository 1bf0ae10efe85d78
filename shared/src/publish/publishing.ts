/**
 * The innermost middleware: publishes what a handler wants published, one after the other, before anything outside
 * counts the message as done. A crash in between publishes again from the first; what comes twice has the same
 * `dedupId` both times.
 */
import { ATTRIBUTE } from '../attributes.ts';
import { TransientError } from '../errors.ts';
import type { Context, Middleware } from '../handler.ts';
import { hashOf } from '../hash.ts';
import { checkTypes, LIMITS, type Message, type OutgoingMessage } from '../message.ts';
import { ack, outcomeOf } from '../outcome.ts';
import { observePublish } from '../telemetry/stages.ts';
import { annotate } from './annotate.ts';
import type { Publisher } from './publisher.ts';
import { checkOptions, publisher as aPublisher, whole } from '../options.ts';

export type PublishingOptions = Readonly<{
  /**
   * The limit on data and attributes of a message together, in bytes (default 10,000,000, Pub/Sub's own; at least 1).
   */
  maxBytes?: number;
}>;

/**
 * Place it innermost. Throws ConfigError `INVALID_OPTION`; what cannot be published is a retry, or a dead letter where it is the message's fault.
 *
 * @example
 * const handler = compose(book, [deadLettering(publisher, 'dead-letters'), publishing(publisher)]);
 */
export function publishing(publisher: Publisher, options: PublishingOptions = {}): Middleware {
  aPublisher('publisher', publisher);
  checkOptions<PublishingOptions>(options, { maxBytes: whole(1) });
  const { maxBytes = LIMITS.messageBytes } = options;
  return (next) => async (message, context) => {
    const outcome = await next(message, context);
    if (outcome.kind !== 'ack' || outcome.publish === undefined) return outcome;
    try {
      for (const [position, outgoing] of outcome.publish.entries()) {
        // Without the lease another delivery may be at work on the same message.
        if (context.signal.aborted) throw aborted(context.signal.reason);
        const named = identified(outgoing, position, message, context, maxBytes);
        await observePublish(named, message, maxBytes, (traced) => publisher.publish(traced));
      }
    } catch (error) {
      return outcomeOf(error);
    }
    return ack(outcome.reason);
  };
}

/** A rerun of the handler makes the same messages again, so their place names them. */
function identified(
  outgoing: OutgoingMessage,
  position: number,
  message: Message,
  context: Context,
  maxBytes: number,
): OutgoingMessage {
  checkTypes(outgoing);
  if (outgoing.attributes[ATTRIBUTE.dedupId] !== undefined) return outgoing;
  const own = message.attributes[ATTRIBUTE.dedupId];
  const input = own === undefined ? ['message ID', context.source, message.id] : ['dedupId', own];
  const dedupId = hashOf(context.consumer, ...input, String(position));
  const { message: named, dropped } = annotate(outgoing, [{ [ATTRIBUTE.dedupId]: dedupId }], maxBytes);
  if (dropped.length > 0) context.log.warn('no room for a dedupId', { messageId: message.id, position });
  return named;
}

const aborted = (cause: unknown): unknown =>
  cause instanceof TransientError
    ? cause
    : new TransientError('DELIVERY_ABORTED', 'the delivery was over before everything was published', {
        cause,
      });
