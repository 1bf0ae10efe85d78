/**
 * The form of a dead letter: the original's data, attributes and ordering key, so that it can be sent again as it was
 * (the ordering key, because a `sequence` may be counted by it), and why it is here.
 *
 * Where there is no room, whose it was goes first, then the error text, then what else the toolkit would add, the reason
 * last. The original is never cut.
 */
import { ATTRIBUTE, without } from '../attributes.ts';
import { codeOf, textOf } from '../errors.ts';
import { type Attributes, byteLength, LIMITS, type OutgoingMessage } from '../message.ts';
import { type Fitted, fit } from '../publish/fit.ts';
import { publishable } from '../publish/identity.ts';
import { addedSchema } from '../publish/schema.ts';
import { cutText } from './cut-text.ts';

export type DeadLetterParts = Readonly<{
  topic: string;
  data: Uint8Array;
  /** As received; what cannot be published again is left out. */
  attributes: Attributes;
  orderingKey?: string;
  error: unknown;
  /** Whose it was: the function or subscriber that gave it up, and the subscription that it came through. */
  from?: Readonly<{ consumer: string; source?: string | undefined }>;
  /** What the toolkit knows of the original (its identity, its time); the original's own values win. */
  origin?: Attributes;
  maxBytes?: number;
}>;

export function composeDeadLetter(parts: DeadLetterParts): Fitted {
  const { topic, data, orderingKey, error, from, origin = {}, maxBytes = LIMITS.messageBytes } = parts;
  // A message that was sent again and failed again has a new reason.
  const theirs = without(publishable(parts.attributes), [...WHOSE, ...WHY]);
  const { consumer, source } = from ?? {};
  const message: OutgoingMessage = {
    topic,
    data,
    attributes: {
      ...origin,
      ...theirs,
      ...(consumer !== undefined && { [ATTRIBUTE.deadLetterConsumer]: cut(consumer) }),
      ...(source !== undefined && { [ATTRIBUTE.deadLetterSource]: cut(source) }),
      [ATTRIBUTE.deadLetterReason]: cut(codeOf(error)),
      [ATTRIBUTE.deadLetterError]: cut(textOf(error)),
    },
    ...(orderingKey !== undefined && { orderingKey }),
  };
  const added = Object.keys(origin).filter((name) => !Object.hasOwn(theirs, name));
  const [reason, text] = WHY;
  return fit(message, [...WHOSE, text, ...addedSchema(parts.attributes), ...added, reason], maxBytes);
}

const WHOSE = [ATTRIBUTE.deadLetterConsumer, ATTRIBUTE.deadLetterSource] as const;
const WHY = [ATTRIBUTE.deadLetterReason, ATTRIBUTE.deadLetterError] as const;
const cut = (text: string): string => cutText(text, LIMITS.attributeValueBytes);

/** The attributes that a publish would take; the others cannot be kept as attributes. */
export function legalAttributes(attributes: Attributes): Attributes {
  return Object.fromEntries(
    Object.entries(publishable(attributes))
      .filter(
        ([key, value]) =>
          byteLength(key) <= LIMITS.attributeKeyBytes && byteLength(value) <= LIMITS.attributeValueBytes,
      )
      .slice(0, LIMITS.attributes),
  );
}
