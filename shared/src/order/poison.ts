/**
 * What is done with a number that is poison, beside what its stream stores about it.
 *
 * Its dead letter is published before anything counts the number as passed: a crash in between publishes it a second
 * time, and a publish that fails leaves the number where it is.
 */
import { codeOf, PermanentError, textOf } from '../errors.ts';
import { compose, type Context, type Handler } from '../handler.ts';
import type { Message } from '../message.ts';
import { cutText } from '../dead-letter/cut-text.ts';
import { deadLetter, type Outcome } from '../outcome.ts';
import type { StreamPolicy } from './options.ts';
import { loaded } from './stored-form.ts';
import type { Blocked } from './stream-state.ts';
import type { HeldMessage, StreamRef } from './stream-store.ts';

/** Publishes the dead letter of a message. What it answers says whether that is confirmed. */
export const burying = (
  { deadLetters }: Pick<StreamPolicy, 'deadLetters'>,
  error: unknown,
): ((message: Message, context: Context) => Promise<Outcome>) => {
  const bury: Handler = compose(async () => deadLetter(error), [deadLetters]);
  return bury;
};

export const isBuried = (outcome: Outcome): boolean =>
  outcome.kind === 'deadLetter' && outcome.published === true;

/**
 * What is held; or, for bytes that no reader understands or that are gone, a message under the name of its number.
 * Rejects with TransientError where the payload store does not answer, and `NO_PAYLOAD_ROOM` where there is none.
 */
export async function readable(
  payloads: StreamPolicy['payloads'],
  ref: StreamRef,
  held: HeldMessage,
): Promise<Message> {
  try {
    return await loaded(payloads, held);
  } catch (error) {
    if (!(error instanceof PermanentError) || error.code === 'NO_PAYLOAD_ROOM') throw error;
    return {
      id: `${ref.key}/${held.number}`,
      data: Buffer.from(held.message),
      attributes: { sequence: String(held.number), sequenceKey: ref.key },
      publishTime: new Date(0),
    };
  }
}

/** The text is for operators who look at the stream; the whole of it is in the log. */
export const blockedBy = (error: unknown, atMs: number): Blocked => ({
  code: cutText(codeOf(error), 100),
  text: cutText(textOf(error), 300),
  atMs,
});
