/**
 * Makes room for a message whose publisher left none: takes away attributes of the toolkit, one after the other in a
 * given order, until the message is within the limits. Never touches what is not named.
 */
import { without } from '../attributes.ts';
import { LIMITS, messageBytes, type OutgoingMessage } from '../message.ts';

export type Fitted = Readonly<{ message: OutgoingMessage; dropped: readonly string[] }>;

/**
 * `droppable` in the order in which they go; a list among them goes as one, because its members mean nothing alone. The
 * result may still be too large, or against another limit: the check before a publish says so.
 */
export function fit(
  message: OutgoingMessage,
  droppable: readonly (string | readonly string[])[],
  maxBytes: number = LIMITS.messageBytes,
): Fitted {
  const dropped: string[] = [];
  let fitted = message;
  for (const name of droppable) {
    const isRoom = Object.keys(fitted.attributes).length <= LIMITS.attributes;
    if (isRoom && messageBytes(fitted) <= maxBytes) break;
    const names = [name].flat().filter((one) => Object.hasOwn(fitted.attributes, one));
    if (names.length === 0) continue;
    fitted = { ...fitted, attributes: without(fitted.attributes, names) };
    dropped.push(...names);
  }
  return { message: fitted, dropped };
}
