/**
 * The stored form of a message that waits for its turn.
 */
import type { Context } from '../handler.ts';
import type { Message } from '../message.ts';
import { encodeMessage } from '../stored-message.ts';
import type { HeldMessage } from './order-store.ts';
import type { Arrival } from './place.ts';

export const heldForm = (arrival: Arrival, message: Message, context: Context): HeldMessage => ({
  number: arrival.number,
  hash: arrival.hash,
  source: context.source,
  message: encodeMessage(message),
});
