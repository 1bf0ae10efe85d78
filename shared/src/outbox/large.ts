/**
 * Messages that are larger than a row: their data waits in the payload store, and the row refers to it.
 *
 * The data is stored before the transaction begins, for nothing outside of a transaction can be written with its commit:
 * a process that abandons the transaction, or dies, leaves data that no row refers to. That data expires, as the data
 * of published messages does, from which a gap is repaired until then; nothing removes it sooner, so that a copy always
 * finds it.
 */
import { TransientError } from '../errors.ts';
import type { OutgoingMessage } from '../message.ts';
import type { PayloadRef, PayloadStore } from '../payload/payload-store.ts';
import { outgoingOf, type Row, type RowLimits, rowOf } from './rows.ts';

/**
 * With what the payload store adds (`KEEP_MS`) 90 days: three times what Pub/Sub keeps at most. A row that is still
 * pending then blocks its stream (`PAYLOAD_MISSING`).
 */
const NEEDED_MS = 30 * 86_400_000;

/** Of a row's ID. */
const ID = 'i'.repeat(43);
/** What a place adds to a stored message: a key and an epoch of 1,024 bytes each, and a number. */
const PLACE_BYTES = 3_000;

/** The data of a message in the payload store; undefined where its row has room for it. */
export async function offload(
  payloads: PayloadStore,
  owner: string,
  message: OutgoingMessage,
  limits: RowLimits,
): Promise<PayloadRef | undefined> {
  if (!isLarge(message, limits)) return undefined;
  return payloads.put(owner, message.data, limits.nowMs + NEEDED_MS);
}

/** Whether its row has no room for it. Throws PermanentError for what no topic takes. */
export function isLarge(message: OutgoingMessage, limits: RowLimits): boolean {
  const row = rowOf(ID, message, { ...limits, maxMessageBytes: Infinity });
  return row.message.length + PLACE_BYTES > limits.maxMessageBytes;
}

/**
 * As `outgoingOf`; TransientError where it is not known whether the data is there, or the relay has no payload store.
 */
export async function load(row: Row, payloads: PayloadStore | undefined): Promise<OutgoingMessage> {
  const outgoing = outgoingOf(row);
  if (row.payload === undefined) return outgoing;
  if (payloads !== undefined) return { ...outgoing, data: await payloads.get(row.payload) };
  const text = 'the data of the row is in the payload store; accepted: a relay with `payloads`';
  throw new TransientError('PAYLOAD_STORE_MISSING', text);
}
