/**
 * Publishes the dead letter of a message that can never succeed, and only then lets the original be acknowledged.
 * A publish that fails makes it a retry: the original stays where it is, and a dead letter may come twice, with the
 * same `dedupId`.
 *
 * Reads the whole wire contract before anything else runs, so that no stage inside it ever sees an invalid option.
 */
import { ATTRIBUTE, parseDeliveryOptions } from '../attributes.ts';
import { codeOf, PermanentError, textOf, TransientError } from '../errors.ts';
import type { Context, Middleware } from '../handler.ts';
import { checkOutgoing, LIMITS, type Message } from '../message.ts';
import { deadLetter, type Outcome, retry } from '../outcome.ts';
import type { Annotated } from '../publish/annotate.ts';
import { dedupIdOf } from '../publish/identity.ts';
import { originOf } from '../publish/origin.ts';
import type { Publisher } from '../publish/publisher.ts';
import { encodeMessage } from '../stored-message.ts';
import { observePublish } from '../telemetry/stages.ts';
import { composeDeadLetter } from './compose-dead-letter.ts';
import { checkOptions, publisher as aPublisher, text, whole } from '../options.ts';

export type DeadLetteringOptions = Readonly<{
  /**
   * The limit on data and attributes of a message together, in bytes (default 10,000,000, Pub/Sub's own; at least 1).
   * The publisher's should be the same.
   */
  maxBytes?: number;
}>;

/** The value of `deadLetterEncoding`: the data is the whole message as `encodeMessage` writes it. */
export const WHOLE_MESSAGE = 'message-v1';

/**
 * Throws ConfigError for a publisher or a topic that is none.
 *
 * @example
 * const handler = compose(book, [deadLettering(publisher, 'dead-letters'), dedup(claims)]);
 */
export function deadLettering(
  publisher: Publisher,
  topic: string,
  options: DeadLetteringOptions = {},
): Middleware {
  aPublisher('publisher', publisher);
  text('topic', topic);
  checkOptions<DeadLetteringOptions>(options, { maxBytes: whole(1) });
  const { maxBytes = LIMITS.messageBytes } = options;
  return (next) => async (message, context) => {
    const outcome = refused(message) ?? (await next(message, context));
    if (outcome.kind !== 'deadLetter' || outcome.published === true) return outcome;
    const { error } = outcome;
    try {
      const { message: composed, dropped } = compose(topic, message, context, error, maxBytes);
      await observePublish(composed, message, maxBytes, (traced) => publisher.publish(traced));
      if (dropped.length > 0) {
        context.log.warn('no room for everything in a dead letter', {
          messageId: message.id,
          dropped: dropped.join(' '),
          code: codeOf(error),
          error: textOf(error),
        });
      }
      return { ...outcome, published: true };
    } catch (failure) {
      context.log.error('a dead letter was not published: the message stays', {
        messageId: message.id,
        code: codeOf(failure),
        error: textOf(failure),
        deadLetterReason: codeOf(error),
      });
      return retry(unpublished(failure));
    }
  };
}

function refused(message: Message): Outcome | undefined {
  try {
    parseDeliveryOptions(message);
    return undefined;
  } catch (error) {
    return error instanceof PermanentError ? deadLetter(error) : retry(error);
  }
}

/**
 * An original that breaks a limit cannot be published as it is: an emulator, or another setting of `maxBytes`, let
 * it through. Its attributes and key then travel inside the data. Beyond the size limit nothing helps: that is
 * refused by the publisher, the message stays in its subscription, and the log says why.
 */
function compose(
  topic: string,
  message: Message,
  context: Context,
  error: unknown,
  maxBytes: number,
): Annotated {
  const origin = {
    [ATTRIBUTE.dedupId]: dedupIdOf(message, context),
    ...originOf({}, message),
  };
  const from = { consumer: context.consumer, source: context.source };
  const letter = composeDeadLetter({ ...message, topic, error, from, origin, maxBytes });
  try {
    checkOutgoing(letter.message, maxBytes);
    return letter;
  } catch {
    const attributes = { [ATTRIBUTE.deadLetterEncoding]: WHOLE_MESSAGE };
    return composeDeadLetter({ topic, data: encodeMessage(message), attributes, error, from, maxBytes });
  }
}

/** Whatever the publisher says, the message itself can still be dead-lettered later: never a dead letter again. */
const unpublished = (cause: unknown): TransientError =>
  new TransientError('DEAD_LETTER_UNPUBLISHED', `its dead letter was not published: ${textOf(cause)}`, {
    cause,
  });
