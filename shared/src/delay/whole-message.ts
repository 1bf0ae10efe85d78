/**
 * The republisher's side of the claim check: the message whole before it is published or dead-lettered, and the payload
 * marked as done only after either is confirmed.
 *
 * A crash before the mark costs a repeat with the same `dedupId`; a mark that fails costs storage until the payload
 * expires, and never a second publish.
 */
import { codeOf, textOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { PayloadStore } from '../payload/payload-store.ts';
import { fetched } from '../tasks/claim-check.ts';
import type { Delayed } from '../tasks/task-body.ts';

export type WholeMessages = Readonly<{
  /** With its message whole; `undefined` where an earlier run had finished it. Throws as `fetched` does. */
  whole(delayed: Delayed, log: Log): Promise<Delayed | undefined>;
  /** After a confirmed publish or dead letter, and after the ledger was told. Never rejects. */
  done(delayed: Delayed, log: Log): Promise<void>;
}>;

const LOST: ReadonlySet<string> = new Set(['PAYLOAD_MISSING', 'PAYLOAD_DAMAGED', 'UNREADABLE_MESSAGE']);

/** No later attempt finds it. */
export const isPayloadLost = (error: unknown): boolean => LOST.has(codeOf(error));

export function wholeMessages(payloads: PayloadStore | undefined): WholeMessages {
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

  return { whole, done };
}
