/**
 * What is done with a head that is given up as poison, beside what is stored about it.
 *
 * Its dead letter is published before anything counts the number as passed: a crash in between publishes it a second
 * time, and a publish that fails leaves the number where it is.
 */
import { codeOf, PermanentError, textOf } from '../errors.ts';
import { compose, type Context, type Handler } from '../handler.ts';
import type { Message } from '../message.ts';
import { cutText } from '../dead-letter/cut-text.ts';
import { deadLetter } from '../outcome.ts';
import { decodeMessage } from '../stored-message.ts';
import { ATTR, count } from '../telemetry/instruments.ts';
import { errorType } from '../telemetry/spans.ts';
import type { PayloadRoom } from '../payload/payload-room.ts';
import { contentOf } from './hold.ts';
import type { Halt } from './key-state.ts';
import type { Lease } from './lease.ts';
import type { Ports } from './options.ts';
import type { HeldMessage, KeyRef } from './order-store.ts';
import type { Failure } from './retry-policy.ts';
import { assertInTime, runUnderLease } from './run.ts';

/** Whether the dead letter of the head is published now. */
export async function buried(
  ports: Ports,
  lease: Lease,
  message: () => Promise<Message>,
  source: string,
  failure: Failure,
  context: Context,
): Promise<boolean> {
  if (failure.published) return true;
  const bury: Handler = compose(async () => deadLetter(failure.error), [ports.deadLetters]);
  const ran = await runUnderLease(ports.clock, lease, source, context, async (inner) => {
    const poison = await message();
    assertInTime(ports.clock, inner);
    return bury(poison, inner);
  });
  return ran.kind === 'finished' && ran.outcome.kind === 'deadLetter' && ran.outcome.published === true;
}

/**
 * What is held, or for bytes that nobody can read, or that are gone, a message under the name of its number. Rejects
 * with TransientError where the payload room does not answer.
 */
export async function readable(
  payloads: PayloadRoom | undefined,
  ref: KeyRef,
  held: HeldMessage,
): Promise<Message> {
  try {
    return decodeMessage(await contentOf(payloads, held));
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

/** The text is for people who look at the key; the whole of it is in the log. */
export const haltOf = (error: unknown): Omit<Halt, 'atMs'> => ({
  code: cutText(codeOf(error), 100),
  text: cutText(textOf(error), 300),
});

/** One line and one count for each number that is given up, and for each key that stands still. */
export function logPoison(
  policy: 'halt' | 'skip',
  context: Context,
  ref: KeyRef,
  sequence: number,
  attempts: number,
  error: unknown,
): void {
  count('poison', { [ATTR.consumer]: ref.consumer, [ATTR.reason]: errorType(error) });
  const text =
    policy === 'halt'
      ? 'in order: a stream stands still at poison, until somebody resumes or skips it'
      : 'in order: a stream goes on without a message that is poison and was dead-lettered';
  context.log.error(text, {
    event: policy === 'halt' ? 'order_halted' : 'order_skipped',
    consumer: ref.consumer,
    sequenceKey: ref.key,
    sequence,
    attempts,
    code: codeOf(error),
    error: textOf(error),
  });
}
