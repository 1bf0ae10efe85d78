/**
 * The republisher's side of the claim check: the message whole before it is published or dead-lettered, and the payload
 * marked as done only after either is confirmed.
 *
 * A crash before the mark costs a repeat with the same `dedupId`; a mark that fails costs storage until the payload
 * expires, and never a second publish.
 */
import { codeOf, textOf } from '../errors.ts';
import { compose, type Middleware } from '../handler.ts';
import type { Log } from '../log.ts';
import { ack, retry } from '../outcome.ts';
import type { PayloadRoom } from '../payload/payload-room.ts';
import { fetched } from './claim-check.ts';
import type { Delayed } from './task-body.ts';

export type WholeMessages = Readonly<{
  /** With its message whole; `undefined` where an earlier run had finished it. Throws as `fetched` does. */
  whole(delayed: Delayed, log: Log): Promise<Delayed | undefined>;
  /** After a confirmed publish or dead letter, and after the ledger was told. Never rejects. */
  done(delayed: Delayed, log: Log): Promise<void>;
  /**
   * Around what handles the task, inside `deadLetters`: gives it the whole message for a dead letter. Where the payload is
   * lost, the letter holds what the task knows of the message, and names the payload; so it does on the `last` attempt
   * when the store is down, and the payload is left as it is.
   */
  letters(deadLetters: Middleware, delayed: Delayed, options: Readonly<{ isLast: boolean }>): Middleware;
}>;

/** No later attempt finds it. */
const LOST: ReadonlySet<string> = new Set(['PAYLOAD_MISSING', 'PAYLOAD_DAMAGED', 'UNREADABLE_MESSAGE']);

export function wholeMessages(payloads: PayloadRoom | undefined): WholeMessages {
  const whole: WholeMessages['whole'] = async (delayed, log) => {
    try {
      return await fetched(delayed, payloads);
    } catch (error) {
      if (codeOf(error) !== 'PAYLOAD_DONE') throw error;
      log.info('finished by an earlier run', { topic: delayed.topic, originId: delayed.message.id });
      return undefined;
    }
  };

  const done: WholeMessages['done'] = async ({ payload }, log) => {
    if (payload === undefined || payloads === undefined) return;
    try {
      await payloads.done(payload);
    } catch (error) {
      const fields = { payload: payload.id, code: codeOf(error), error: textOf(error) };
      log.warn('a payload was not marked as done: it stays until it expires', fields);
    }
  };

  return {
    whole,
    done,
    letters: (deadLetters, delayed, { isLast }) => {
      if (delayed.payload === undefined) return (next) => next;
      return (next) => async (message, context) => {
        const outcome = await next(message, context);
        if (outcome.kind !== 'deadLetter') return outcome;
        let found: Delayed | undefined;
        try {
          found = await whole(delayed, context.log);
        } catch (error) {
          return isLast || LOST.has(codeOf(error)) ? outcome : retry(error);
        }
        if (found === undefined) return ack();
        const told = await compose(async () => outcome, [deadLetters])(found.message, context);
        if (told.kind === 'deadLetter' && told.published === true) await done(delayed, context.log);
        return told;
      };
    },
  };
}
