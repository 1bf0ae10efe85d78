/**
 * Makes room for a message whose publisher left none: takes away attributes of the toolkit, one after the other in a
 * given order, until the message is within the limits. Never touches what is not named.
 */
import { without } from '../attributes.ts';
import { LIMITS, messageBytes, type OutgoingMessage } from '../message.ts';

export type Fitted = Readonly<{ message: OutgoingMessage; dropped: readonly string[] }>;

/** The result may still be too large, or against another limit: the check before a publish says so. */
export function fit(
  message: OutgoingMessage,
  droppable: readonly string[],
  maxBytes: number = LIMITS.messageBytes,
): Fitted {
  const dropped: string[] = [];
  let fitted = message;
  for (const name of droppable) {
    const isRoom = Object.keys(fitted.attributes).length <= LIMITS.attributes;
    if (isRoom && messageBytes(fitted) <= maxBytes) break;
    if (!Object.hasOwn(fitted.attributes, name)) continue;
    fitted = { ...fitted, attributes: without(fitted.attributes, [name]) };
    dropped.push(name);
  }
  return { message: fitted, dropped };
}
