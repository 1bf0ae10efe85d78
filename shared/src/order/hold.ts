/**
 * The stored form of a message that waits for its turn. One that is too large for the store waits in the payload room,
 * and what is held refers to it.
 *
 * The content is in the room before anything refers to it, and is given up only after the commit that needs it no
 * more. A crash in between leaves content that nobody asks for until its expiry.
 */
import { PermanentError, textOf } from '../errors.ts';
import type { Context } from '../handler.ts';
import { hashOf } from '../hash.ts';
import type { Message } from '../message.ts';
import type { PayloadRoom } from '../payload/payload-room.ts';
import { encodeMessage } from '../stored-message.ts';
import type { Ports } from './options.ts';
import type { HeldMessage } from './order-store.ts';
import type { Arrival } from './place.ts';

/** Ten years, as for a delay: a stream may stand still for long, and its room keeps nothing without an end. */
const KEPT_MS = 315_360_000_000;

/** Undefined where the message is too large to be held, and there is no room for it. */
export async function heldForm(
  ports: Pick<Ports, 'store' | 'payloads'>,
  arrival: Arrival,
  message: Message,
  context: Context,
): Promise<HeldMessage | undefined> {
  const { number, hash } = arrival;
  const content = encodeMessage(message);
  const form = { number, hash, source: context.source, message: content };
  if (content.length <= ports.store.maxHeldBytes) return form;
  if (ports.payloads === undefined) return undefined;
  const owner = hashOf('order', context.consumer, arrival.key, String(number));
  const payload = await ports.payloads.put(owner, content, context.now() + KEPT_MS);
  return { ...form, message: new Uint8Array(), payload };
}

/** Rejects with PermanentError where the content is gone or damaged, TransientError where nothing is known. */
export async function contentOf(payloads: PayloadRoom | undefined, held: HeldMessage): Promise<Uint8Array> {
  if (held.payload === undefined) return held.message;
  if (payloads !== undefined) return payloads.get(held.payload);
  throw new PermanentError(
    'NO_PAYLOAD_ROOM',
    `the content of number ${held.number} waits in the payload room, and none is configured`,
  );
}

/** What is done, or was never held, needs its content no more. Losing the call costs room until the expiry. */
export async function discard(
  payloads: PayloadRoom | undefined,
  context: Pick<Context, 'log'>,
  held: readonly (HeldMessage | undefined)[],
): Promise<void> {
  for (const one of held) {
    if (one?.payload === undefined || payloads === undefined) continue;
    try {
      await payloads.done(one.payload);
    } catch (error) {
      context.log.warn('in order: a large message that is done keeps its room until its expiry', {
        sequence: one.number,
        error: textOf(error),
      });
    }
  }
}
