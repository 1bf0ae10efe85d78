/**
 * Outgoing messages as rows of the handler's own commit, and rows as messages again.
 *
 * They get their `dedupId` when they are written (from consumer, input key and position), so a row that is published
 * twice is recognisable: a crash between its publish and its removal repeats it, and never loses it.
 */
import type { Clock } from '../clock.ts';
import { ConfigError, PermanentError, textOf } from '../errors.ts';
import type { Context } from '../handler.ts';
import { hashOf } from '../hash.ts';
import { checkOutgoing, type OutgoingMessage } from '../message.ts';
import type { Publisher } from '../publish/publisher.ts';
import { decodeMessage, encodeMessage } from '../stored-message.ts';
import type { ClaimRequest } from './claim-store.ts';
import type { OutboxRow, OutboxRows, PendingRow } from './inbox-store.ts';

/** Digits of a position in a row's ID. */
const POSITION_DIGITS = 6;

export type CollectorOptions = Readonly<{
  clock: Clock;
  /** Of the message as it is stored. */
  maxMessageBytes: number;
  /** Of data and attributes together. */
  maxBytes: number;
  hasPublisher: boolean;
}>;

export type RowCollector = Publisher & Readonly<{ rows: readonly OutboxRow[] }>;

/** Takes messages as `publishing` hands them over. Rejects with what a publish would reject with, before anything is written. */
export function rowCollector(
  { key, owner }: ClaimRequest,
  { clock, maxMessageBytes, maxBytes, hasPublisher }: CollectorOptions,
): RowCollector {
  const rows: OutboxRow[] = [];
  return {
    rows,
    async publish(outgoing) {
      if (!hasPublisher) {
        const text =
          'the handler returned messages and inbox has no publisher; accepted: the option publisher';
        throw new ConfigError('NO_PUBLISHER', text);
      }
      checkOutgoing(outgoing, maxBytes);
      const { topic, ...parts } = outgoing;
      // The owner keeps apart what two records of one key leave behind, once the first has outlived its retention.
      const position = String(rows.length).padStart(POSITION_DIGITS, '0');
      const id = `${key}.${hashOf(owner).slice(0, 10)}.${position}`;
      const data = Buffer.from(outgoing.data);
      const message = encodeMessage({ ...parts, data, id, publishTime: new Date(clock.now()) });
      if (message.length > maxMessageBytes) {
        const text = `an outgoing message takes ${message.length} bytes in the outbox`;
        throw new PermanentError('LIMIT_EXCEEDED', `${text}; accepted: at most ${maxMessageBytes} bytes`);
      }
      rows.push({ id, key, topic, message });
      return id;
    },
  };
}

/** Throws PermanentError for bytes that are no message. */
function outgoingOf({ topic, message }: OutboxRow): OutgoingMessage {
  const { data, attributes, orderingKey } = decodeMessage(message);
  return { topic, data, attributes, ...(orderingKey !== undefined && { orderingKey }) };
}

export type Unpublished = Omit<PendingRow, 'ageMs'>;

export type Published = Readonly<{
  /** How many are confirmed, from the first. */
  count: number;
  /** Why the next one is not. */
  failure?: unknown;
}>;

/**
 * Publishes the rows of one message one after the other, up to the first that fails, and removes those that were
 * confirmed. Never rejects: what could not be removed is published again later.
 */
export async function publishRows(
  rows: OutboxRows,
  publisher: Publisher,
  pending: readonly Pick<PendingRow, 'id' | 'row' | 'what'>[],
  { log, signal }: Pick<Context, 'log' | 'signal'>,
): Promise<Published> {
  const confirmed: string[] = [];
  let failure: unknown;
  for (const { id, row, what } of pending) {
    if (signal.aborted) {
      failure = signal.reason ?? new Error('aborted');
      break;
    }
    try {
      if (row === undefined) throw new PermanentError('FOREIGN_ROW', `row ${id} is not ours: ${what ?? ''}`);
      await publisher.publish(outgoingOf(row));
      confirmed.push(id);
    } catch (error) {
      failure = error;
      break;
    }
  }
  if (confirmed.length > 0) {
    try {
      await rows.remove(confirmed);
    } catch (error) {
      const event = 'outbox_not_removed';
      log.warn('published messages stay in the outbox and will be published again', {
        event,
        rows: confirmed.length,
        error: textOf(error),
      });
    }
  }
  return failure === undefined ? { count: confirmed.length } : { count: confirmed.length, failure };
}
