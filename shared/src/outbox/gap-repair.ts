/**
 * Repair of gaps: a consumer that misses numbers asks the publisher's outbox for them. Rows stay as sent for their
 * retention, so a message that was published and lost on the way can be published again, under its `dedupId`.
 */
import { PermanentError, TransientError } from '../errors.ts';
import { identifierHash } from '../hash.ts';
import { checkOptions, required, type Shape, text, whole } from '../options.ts';
import { drain } from './drain.ts';
import { load } from './large.ts';
import type { Row, StreamRef } from './rows.ts';
import type { DrainPorts } from './stream-lease.ts';

type Numbers = Readonly<{ from: number; to: number }>;

export type GapRepair = Readonly<{
  /**
   * Publishes again what the publisher's outbox still has of these numbers of the stream; answers which were published.
   * Bounded in time. TransientError when the store or the publish is down: nothing is decided then.
   */
  republish(key: string, range: Numbers): Promise<readonly number[]>;
}>;

/** Beyond so many rows, or this time, a call answers with what it has done; the rest is for the next one. */
const ROWS = 1_000;
const LIMIT_MS = 20_000;
const NUMBERS_SHAPE: Shape<Numbers> = { from: required(whole(1)), to: required(whole(1)) };

/**
 * `key` is a key of the present counter. Numbers that are still pending
 * are published as the relay does it, after those before them; where that is not possible now (the relay backs off, is
 * blocked, or is at it elsewhere) the answer is TransientError `OUTBOX_PENDING`: they will come, and must not be given
 * up. Numbers that were taken without a row (mode `direct`), and rows whose retention is over, are not in the answer:
 * there is nothing to publish.
 */
export function gapRepair(ports: DrainPorts): GapRepair {
  const { store, clock, pageSize } = ports;
  return {
    async republish(key, range) {
      text('key', key);
      checkOptions<Numbers>(range, NUMBERS_SHAPE, 'range');
      const { from, to } = range;
      const ref = await store.streamOf(key);
      if (ref === undefined) return [];
      const until = clock.monotonic() + LIMIT_MS;
      const done: number[] = [];
      const isOver = (): boolean => clock.monotonic() >= until;
      let last = from - 1;
      let fresh: number | undefined;
      while (last < to && done.length < ROWS) {
        const rows = await store.after(ref, last, pageSize);
        for (const row of rows) {
          const { number } = row.place;
          if (number > to || done.length >= ROWS || isOver()) return done;
          if (row.isSent) {
            if (row.problem === undefined && (await published(ports, row))) done.push(number);
          } else {
            fresh ??= await drained(ports, ref);
            if (number > fresh) throw stillPending(key, number);
            done.push(number);
          }
          last = number;
        }
        if (rows.length < pageSize) return done;
      }
      return done;
    },
  };
}

const stillPending = (key: string, number: number): TransientError =>
  new TransientError(
    'OUTBOX_PENDING',
    `number ${number} of sequenceKey ${identifierHash(key)} is not published yet`,
  );

/** The last number that is published then. */
async function drained(ports: DrainPorts, ref: StreamRef): Promise<number> {
  const controller = new AbortController();
  const cancel = ports.clock.after(LIMIT_MS, () => controller.abort());
  try {
    return (await drain(ports, ref, controller.signal)).sent;
  } finally {
    cancel();
  }
}

/** False for one that no topic takes any more: it stays a gap, and the others are repaired. */
async function published({ publisher, payloads }: DrainPorts, row: Row): Promise<boolean> {
  try {
    await publisher.publish(await load(row, payloads));
    return true;
  } catch (error) {
    if (error instanceof PermanentError) return false;
    throw error;
  }
}
