/**
 * The republisher's side of the claim check: a message is loaded before it is published or dead-lettered, and its
 * payload is marked as done only after either is confirmed.
 *
 * A crash before the mark costs a repeat with the same `dedupId`; a mark that fails costs storage until the payload
 * expires, and never a second publish.
 */
import { codeOf, textOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { PayloadStore } from '../payload/payload-store.ts';
import { load as loadPayload } from '../tasks/claim-check.ts';
import type { Delayed } from '../tasks/task-body.ts';

export type MessageLoader = Readonly<{
  /**
   * With its message loaded; `undefined` where an earlier run has finished it. Throws as `load` of the claim check
   * does.
   */
  load(delayed: Delayed, log: Log): Promise<Delayed | undefined>;
  /** After a confirmed publish or dead letter, and after the ledger has it. Never rejects. */
  done(delayed: Delayed, log: Log): Promise<void>;
}>;

const LOST: ReadonlySet<string> = new Set(['PAYLOAD_MISSING', 'PAYLOAD_DAMAGED', 'UNREADABLE_MESSAGE']);

/** No later attempt finds it. */
export const isPayloadLost = (error: unknown): boolean => LOST.has(codeOf(error));

export function messageLoader(payloads: PayloadStore | undefined): MessageLoader {
  const load: MessageLoader['load'] = async (delayed, log) => {
    try {
      return await loadPayload(delayed, payloads);
    } catch (error) {
      if (codeOf(error) !== 'PAYLOAD_DONE') throw error;
      log.info('finished by an earlier run', { topic: delayed.topic, originId: delayed.message.id });
      return undefined;
    }
  };

  const done: MessageLoader['done'] = async ({ payload }, log) => {
    if (payload === undefined || payloads === undefined) return;
    try {
      await payloads.done(payload);
    } catch (error) {
      const fields = { payload: payload.id, code: codeOf(error), error: textOf(error) };
      log.warn('a payload was not marked as done: it stays until it expires', fields);
    }
  };

  return { load, done };
}
