/**
 * The form of a dead letter: the original's data, attributes and ordering key, so that it can be sent again as it was
 * (the ordering key, because a `sequence` may be counted by it), and why it is here.
 *
 * Where there is no room, whose it was goes first, then the error text, then what else the toolkit would add, the reason
 * last. The original is never cut.
 */
import { ATTRIBUTE, without } from '../attributes.ts';
import { codeOf, textOf } from '../errors.ts';
import { type Attributes, byteLength, LIMITS } from '../message.ts';
import { type Annotated, annotate } from '../publish/annotate.ts';
import { publishable } from '../publish/identity.ts';
import { schemaAttributes } from '../publish/schema.ts';
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
  /** What the toolkit knows of the original, the most needed first; the original's own values win. */
  origin?: Attributes;
  maxBytes?: number;
}>;

export function composeDeadLetter(parts: DeadLetterParts): Annotated {
  const { topic, data, orderingKey, error, from, origin = {}, maxBytes = LIMITS.messageBytes } = parts;
  // A message that was sent again and failed again has a new reason.
  const theirs = without(publishable(parts.attributes), [...WHOSE, ...WHY]);
  const { consumer, source } = from ?? {};
  const message = { topic, data, attributes: theirs, ...(orderingKey !== undefined && { orderingKey }) };
  const missing = Object.entries(origin).filter(([name]) => !Object.hasOwn(theirs, name));
  // The most needed first.
  const ours = [
    { [ATTRIBUTE.deadLetterReason]: cut(codeOf(error)) },
    ...missing.map(([name, value]) => ({ [name]: value })),
    schemaAttributes(parts.attributes),
    { [ATTRIBUTE.deadLetterError]: cut(textOf(error)) },
    source === undefined ? {} : { [ATTRIBUTE.deadLetterSource]: cut(source) },
    consumer === undefined ? {} : { [ATTRIBUTE.deadLetterConsumer]: cut(consumer) },
  ];
  return annotate(message, ours, maxBytes);
}

const WHOSE = [ATTRIBUTE.deadLetterConsumer, ATTRIBUTE.deadLetterSource] as const;
const WHY = [ATTRIBUTE.deadLetterReason, ATTRIBUTE.deadLetterError] as const;
const cut = (text: string): string => cutText(text, LIMITS.attributeValueBytes);

/** The attributes that a publish would take; the others cannot be kept as attributes. */
export function legalAttributes(attributes: Attributes): Attributes {
  return Object.fromEntries(
    Object.entries({ ...publishable(attributes), ...schemaAttributes(attributes) })
      .filter(
        ([key, value]) =>
          byteLength(key) <= LIMITS.attributeKeyBytes && byteLength(value) <= LIMITS.attributeValueBytes,
      )
      .slice(0, LIMITS.attributes),
  );
}
