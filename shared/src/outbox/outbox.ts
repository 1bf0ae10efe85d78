/**
 * The transactional outbox: messages that are committed with the caller's own writes or not at all, and published
 * afterwards by a relay, at least once. With a `sequenceKey` the number is taken in the same transaction, so that there
 * is no number without its message, whichever process dies when.
 *
 *   await firestore.runTransaction(async (transaction) => {
 *     const slot = await outbox.reserve(transaction, { sequenceKey: 'order-42' });   // reads come first
 *     …your own reads and writes…
 *     added = slot.add(message);
 *   });
 *   await added.afterCommit();
 *
 * A transaction function that is run again, after a conflict or a lost reply, answers as it did and writes nothing twice.
 */
import { randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../clock.ts';
import { hashOf } from '../hash.ts';
import { LIMITS, type OutgoingMessage } from '../message.ts';
import { checkSequenceKey } from '../sequence/sequencer.ts';
import type { PayloadRef, PayloadStore } from '../payload/payload-store.ts';
import { callsOf, checkAdd, checkId } from './calls.ts';
import { offload } from './large.ts';
import type { CounterHead, OutboxWriter, Written } from './outbox-store.ts';
import type { Relay } from './relay.ts';
import { type Place, type Row, type RowLimits, rowOf } from './rows.ts';
import {
  anyText,
  callable,
  checkOptions,
  clock as aClock,
  isObject,
  payloads as somePayloads,
  port,
  type Shape,
  text,
  whole,
} from '../options.ts';

export type OutboxOptions = Readonly<{
  /** Publishes in this process right after the commit (`afterCommit`). Without one a relay elsewhere does it. */
  relay?: Relay;
  /**
   * Where the data of messages waits that are larger than a row (`prepare`). Every relay needs the same. Without it
   * they are refused.
   */
  payloads?: PayloadStore;
  /** The project of topics that are given by their ID alone. Default: that of the store's client. Rows hold full names. */
  projectId?: string;
  /** Default: the machine's. */
  clock?: Clock;
  /**
   * The limit on data and attributes of a message together, in bytes (default 10,000,000, Pub/Sub's own; at least 1).
   */
  maxBytes?: number;
  /** Mints names of calls and epochs (default: random UUIDs). */
  newId?: () => string;
}>;

export type SlotOptions = Readonly<{
  /** The stream, 1 to 1,024 bytes. Absent: the messages have no order. */
  sequenceKey?: string;
  /**
   * Your own name for this call, 1 to 1,024 bytes: a later transaction under the same name and key adds nothing, for as
   * long as its rows are kept. Default: one for each call of `runTransaction`.
   */
  id?: string;
}>;

export type Added = Readonly<{
  /** The numbers of the messages; empty without a `sequenceKey`. */
  numbers: readonly number[];
  /** An earlier run of this call is committed already: nothing was added, and your own writes were made with it. */
  isRepeat: boolean;
  /**
   * Call it once the transaction has resolved: publishes by the relay's own rules, or leaves it to the process that
   * holds the stream. Never rejects; a later pass publishes what is left. Without a relay it does nothing.
   */
  afterCommit(): Promise<void>;
}>;

export type OutboxSlot = Readonly<{
  /** An earlier run of this call is committed already. */
  isRepeat: boolean;
  /**
   * All messages of the slot, in their order; once for each run of the transaction's function. Throws PermanentError for
   * a message that no topic takes (`LIMIT_EXCEEDED` where it is larger than a row, Firestore about 1 MB, and was not
   * prepared); nothing of the call is written then, and it may be called again.
   */
  add(...messages: readonly OutgoingMessage[]): Added;
}>;

export type Outbox<Tx> = Readonly<{
  /**
   * Before the transaction, for messages that may be larger than a row: puts the data of those that are in the payload
   * store, for 90 days, and `add` then takes these very objects, with the data that they have now. Without one, or for
   * small messages, it does nothing. Rejects with PermanentError as `add`, and with STORE_UNAVAILABLE.
   */
  prepare(...messages: readonly OutgoingMessage[]): Promise<void>;
  /**
   * Reads in the transaction, so before its first write: two documents with a `sequenceKey`, else one. One slot for each
   * `sequenceKey` (and one without, or one for each `id`) in a transaction: a later one takes its place, and `add` of the
   * earlier one throws. Rejects with ConfigError `INVALID_OPTION` for an option that there is not.
   */
  reserve(transaction: Tx, options?: SlotOptions): Promise<OutboxSlot>;
}>;

/** For what is checked alone, and not stored: the client may not know its own before its first request. */
export const ANY_PROJECT = 'any';

/** A name that is misspelt would be rows without order. How long a text may be is checked where it is used. */
const SLOT_SHAPE: Shape<Required<SlotOptions>> = { sequenceKey: anyText, id: anyText };

/** How long a row without order belongs to its writer before a relay may take it. */
const WRITER_LEASE_MS = 30_000;

/**
 * Relies on the client to hand the same transaction object to every run of a transaction's function, as Google's does;
 * with another client give each call an `id`.
 *
 * @example
 * const store = firestoreOutbox(firestore);
 * const box = outbox(store, { relay: relay(store, publisher) });
 * const added = await firestore.runTransaction(async (transaction) => {
 *   const slot = await box.reserve(transaction, { sequenceKey: 'order-42' });
 *   return slot.add({ topic: 'orders', data: Buffer.from('x'), attributes: {} });
 * });
 * await added.afterCommit();
 */
export function outbox<Tx extends object>(writer: OutboxWriter<Tx>, options: OutboxOptions = {}): Outbox<Tx> {
  port(['readSlot', 'writeSlot'], 'the store of an outbox, for example firestoreOutbox(firestore)')(
    'store',
    writer,
  );
  checkOptions<OutboxOptions>(options, {
    relay: port(['flush', 'sweep'], 'a relay, for example relay(store, publisher)'),
    payloads: somePayloads,
    clock: aClock,
    maxBytes: whole(1),
    newId: callable,
    projectId: text,
  });
  const { relay, clock = systemClock(), maxBytes = LIMITS.messageBytes, newId = randomUUID } = options;
  const { payloads } = options;
  const limitsNow = (project: string): RowLimits => ({
    maxMessageBytes: writer.maxMessageBytes,
    maxBytes,
    project,
    nowMs: clock.now(),
  });
  const apart = new WeakMap<OutgoingMessage, PayloadRef>();
  const calls = callsOf<Tx>(newId);

  return {
    async prepare(...messages) {
      if (payloads === undefined) return;
      for (const message of messages) {
        const ref = await offload(
          payloads,
          hashOf('outbox payload', newId()),
          message,
          limitsNow(ANY_PROJECT),
        );
        if (ref !== undefined) apart.set(message, ref);
      }
    },
    async reserve(transaction, slot = {}) {
      isObject('transaction', transaction);
      checkOptions<SlotOptions>(slot, SLOT_SHAPE);
      const { sequenceKey, id } = slot;
      if (sequenceKey !== undefined) checkSequenceKey(sequenceKey);
      if (id !== undefined) checkId(id);
      const { call, isLatest } = calls(transaction, slot);
      const rowId = (index: number): string =>
        hashOf('outbox', sequenceKey ?? '', sequenceKey === undefined ? '' : 'key', call, String(index));
      const { committed, head } = await writer.readSlot(transaction, rowId(0), sequenceKey);
      let isAdded = false;
      return {
        isRepeat: committed !== undefined,
        add(...messages) {
          checkAdd(isAdded, isLatest(), messages.length);
          if (committed !== undefined) {
            isAdded = true;
            return repeated(committed, rowId, relay);
          }
          const limits = limitsNow(options.projectId ?? writer.project());
          const rowAt = (message: OutgoingMessage, index: number, place?: Place): Row =>
            rowOf(rowId(index), message, limits, place, apart.get(message));
          if (sequenceKey === undefined) {
            const rows = messages.map((message, index) => rowAt(message, index));
            const lease = { owner: call, leaseMs: WRITER_LEASE_MS };
            isAdded = true;
            writer.writeSlot(transaction, { rows, ...(relay !== undefined && { lease }) });
            const afterCommit = async () => relay?.publishRows(rows);
            return { numbers: [], isRepeat: false, afterCommit };
          }
          const { epoch, next, outboxed }: CounterHead = head ?? { epoch: newId(), next: 1, outboxed: 0 };
          const rows = messages.map((message, index): Row => {
            const place = { key: sequenceKey, epoch, number: next + index };
            const after = index === 0 ? outboxed : next + index - 1;
            return rowAt(message, index, { ...place, after });
          });
          const end = next + messages.length;
          const moved = { key: sequenceKey, epoch, next: end, outboxed: end - 1, isNew: head === undefined };
          isAdded = true;
          writer.writeSlot(transaction, { rows, head: moved });
          const numbers = rows.map((_, index) => next + index);
          return {
            numbers,
            isRepeat: false,
            afterCommit: async () => relay?.flush({ key: sequenceKey, epoch }, end - 1),
          };
        },
      };
    },
  };
}

function repeated(
  { place, count }: Written,
  rowId: (index: number) => string,
  relay: Relay | undefined,
): Added {
  const indices = Array.from({ length: count }, (_, index) => index);
  return {
    numbers: place === undefined ? [] : indices.map((index) => place.number + index),
    isRepeat: true,
    afterCommit: async () =>
      place === undefined
        ? relay?.flushRows(indices.map(rowId))
        : relay?.flush(place, place.number + count - 1),
  };
}
