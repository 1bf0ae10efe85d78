/**
 * The sweep of the outbox: publishes what was committed and is still not known to be published, because its process
 * died or its publisher failed, and removes it. Any number of sweeps and deliveries may run at once: what two of them
 * publish is the same message with the same `dedupId`.
 */
import { ConfigError, PermanentError, textOf } from '../errors.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { type Log, silent } from '../log.ts';
import type { Publisher } from '../publish/publisher.ts';
import type { OutboxRows, PendingRow } from './inbox-store.ts';
import { publishRows } from './outbox-rows.ts';
import {
  anything,
  checkOptions,
  duration,
  log as aLog,
  port,
  publisher as aPublisher,
  signal as aSignal,
  text,
} from '../options.ts';

export type PublishPendingOptions = Readonly<{
  /**
   * Younger rows are left to the delivery that wrote them, default `1m`: longer than a delivery needs to publish after
   * its commit. Judged on the store's clock.
   */
  olderThan?: Duration;
  /** Rows read, and kept in memory, at a time, default 25: each may have a megabyte. */
  pageSize?: number;
  /** Rows looked at in one call, default 10,000; rounded up to whole pages. */
  limit?: number;
  /** Goes on after this row: the `cursor` of the call before. */
  after?: string;
  log?: Log;
  /** Ends the sweep after the publish under way. */
  signal?: AbortSignal;
}>;

export type PublishPendingResult = Readonly<{
  published: number;
  /** Could not be published and stay; each is logged. They hold up the rest of their own message only. */
  failed: number;
  /** Too young, or behind one that failed. */
  left: number;
  /** Present when the limit or the signal ended the sweep before the last row: pass it as `after`. */
  cursor?: string;
}>;

/** Rejects with STORE_UNAVAILABLE when the rows cannot be read; what was published until then is done. */
export async function publishPending(
  store: Readonly<{ rows: OutboxRows }>,
  publisher: Publisher,
  options: PublishPendingOptions = {},
): Promise<PublishPendingResult> {
  const rows = typeof store === 'object' && store !== null ? store.rows : undefined;
  port(['of', 'page', 'remove'], 'the rows of an inbox, for example of firestoreInbox(firestore)')(
    'store.rows',
    rows,
  );
  aPublisher('publisher', publisher);
  checkOptions<PublishPendingOptions>(options, {
    olderThan: duration,
    pageSize: anything,
    limit: anything,
    after: text,
    log: aLog,
    signal: aSignal,
  });
  const { olderThan = '1m', pageSize = 25, limit = 10_000, log = silent } = options;
  const { signal = new AbortController().signal } = options;
  const olderThanMs = toMilliseconds(olderThan, 'olderThan');
  atLeastOne('pageSize', pageSize);
  atLeastOne('limit', limit);
  let cursor = options.after;
  let looked = 0;
  /** Whose rows wait for one that comes before them. */
  let heldUp: string | undefined;
  const sum = { published: 0, failed: 0, left: 0 };
  for (;;) {
    const page = await store.rows.page(cursor, pageSize);
    for (const message of messagesOf(page)) {
      if (signal.aborted) return ended(sum, cursor);
      const writer = message[0] && writerOf(message[0]);
      const isReady = writer !== heldUp && message.every(({ ageMs }) => ageMs >= olderThanMs);
      const ready = isReady ? message : [];
      const { count, failure } = await publishRows(store.rows, publisher, ready, { log, signal });
      const failed = failure === undefined || signal.aborted ? 0 : 1;
      sum.published += count;
      sum.failed += failed;
      sum.left += message.length - count - failed;
      if (failed > 0) {
        const fields = { row: message[count]?.id, error: textOf(failure) };
        if (failure instanceof PermanentError) {
          const text = 'an outgoing message cannot be published: it stays in the outbox';
          log.error(text, { event: 'outbox_failed', ...fields });
        } else {
          log.warn('an outgoing message was not published: the next sweep tries again', fields);
        }
      }
      if (count < message.length) heldUp = writer;
      cursor = message.at(-1)?.id ?? cursor;
    }
    looked += page.length;
    if (page.length < pageSize) return sum;
    if (looked >= limit) return ended(sum, cursor);
  }
}

/** The rows that one delivery wrote stand together; a page may end between them. */
function messagesOf(page: readonly PendingRow[]): PendingRow[][] {
  const messages: PendingRow[][] = [];
  for (const row of page) {
    const last = messages.at(-1);
    if (last?.[0] !== undefined && writerOf(last[0]) === writerOf(row)) last.push(row);
    else messages.push([row]);
  }
  return messages;
}

const writerOf = ({ id }: PendingRow): string => id.slice(0, id.lastIndexOf('.'));

function ended(sum: PublishPendingResult, cursor: string | undefined): PublishPendingResult {
  return cursor === undefined ? sum : { ...sum, cursor };
}

function atLeastOne(name: string, value: number): void {
  if (Number.isSafeInteger(value) && value >= 1) return;
  const text = `${name} is ${JSON.stringify(value)}; accepted: a whole number from 1`;
  throw new ConfigError('INVALID_OPTION', text);
}
