/**
 * The outbox for publishers without a transaction of their own: numbers and messages in one commit, many messages in each.
 *
 * In a process one transaction is in flight for each key; what is sent meanwhile shares the next one. So a hot key
 * costs one commit for many messages, where callers with their own transactions pay one each. What is confirmed is
 * committed and will be published, whichever process dies; a rejected send of unknown outcome may be published too.
 */
import { randomUUID } from 'node:crypto';
import { keyedBatch } from '../async/keyed-batch.ts';
import { systemClock } from '../clock.ts';
import { TransientError } from '../errors.ts';
import { byteLength, LIMITS, messageBytes, type OutgoingMessage } from '../message.ts';
import { checkSequenceKey } from '../sequence/sequencer.ts';
import { type Added, ANY_PROJECT, outbox, type OutboxOptions } from './outbox.ts';
import { isLarge } from './large.ts';
import type { OutboxWriter } from './outbox-store.ts';
import { rowOf } from './rows.ts';
import { callable } from '../options.ts';

/** Runs `work` in a transaction and commits: Google's `runTransaction`, or `transact` of the memory. */
export type Transact<Tx> = <Result>(work: (transaction: Tx) => Promise<Result>) => Promise<Result>;

export type OutboxSender = Readonly<{
  /**
   * Resolves with the numbers of the messages, which follow each other in the order of the list, once they are committed
   * and, where a relay is given, were published or left to another. Rejects with PermanentError for a message that no topic
   * or row takes, and nothing of the call is committed; with what the store rejects with otherwise.
   */
  send(sequenceKey: string, ...messages: readonly OutgoingMessage[]): Promise<readonly number[]>;
}>;

type Sent = Readonly<{ messages: readonly OutgoingMessage[]; bytes: number }>;

/** Firestore takes 10 MiB in a request: https://cloud.google.com/firestore/quotas#writes_and_transactions */
const COMMIT_BYTES = 5_000_000;
const COMMIT_MESSAGES = 200;
/** A commit of unknown outcome is asked again under its name, which adds nothing twice. */
const TRIES = 3;

/**
 * `writer` is the store of an outbox, `options` are those of `outbox`. Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * const store = firestoreOutbox(firestore);
 * const { send } = outboxSender(store, (work) => firestore.runTransaction(work), { relay: relay(store, publisher) });
 * const [number] = await send('order-42', { topic: 'orders', data: Buffer.from('x'), attributes: {} });
 */
export function outboxSender<Tx extends object>(
  writer: OutboxWriter<Tx>,
  transact: Transact<Tx>,
  options: OutboxOptions = {},
): OutboxSender {
  const box = outbox(writer, options);
  callable('transact', transact);
  const { newId = randomUUID, maxBytes = LIMITS.messageBytes, clock = systemClock() } = options;

  const commit = async (sequenceKey: string, messages: readonly OutgoingMessage[]): Promise<Added> => {
    const id = newId();
    // Here, so that the caller that sends a large message first is numbered first.
    await box.prepare(...messages);
    for (let left = TRIES; ; left -= 1) {
      try {
        return await transact(async (transaction) => {
          const slot = await box.reserve(transaction, { sequenceKey, id });
          return slot.add(...messages);
        });
      } catch (error) {
        if (left <= 1 || !isUnknown(error)) throw error;
      }
    }
  };
  const sendAll = keyedBatch<Sent, readonly number[]>({
    fitting,
    async run(key, sent) {
      const added = await commit(
        key,
        sent.flatMap(({ messages }) => messages),
      );
      const published = added.afterCommit();
      let from = 0;
      return sent.map(async ({ messages }) => {
        const numbers = added.numbers.slice(from, (from += messages.length));
        await published;
        return numbers;
      });
    },
  });

  return {
    async send(sequenceKey, ...messages) {
      checkSequenceKey(sequenceKey);
      const maxMessageBytes = options.payloads === undefined ? writer.maxMessageBytes : Infinity;
      const limits = { maxMessageBytes, maxBytes, project: ANY_PROJECT, nowMs: clock.now() };
      const longest = { key: sequenceKey, epoch: newId(), number: Number.MAX_SAFE_INTEGER, after: 0 };
      for (const message of messages) rowOf('i'.repeat(ID_LENGTH), message, limits, longest);
      if (messages.length === 0) return [];
      const copies = messages.map((message) => ({ ...message, attributes: { ...message.attributes } }));
      const isApart = (message: OutgoingMessage): boolean =>
        options.payloads !== undefined &&
        isLarge(message, { ...limits, maxMessageBytes: writer.maxMessageBytes });
      const bytes = copies.reduce((sum, message) => {
        const own = messageBytes(message) - (isApart(message) ? message.data.length : 0);
        return sum + own + byteLength(sequenceKey) + ROW_BYTES;
      }, 0);
      return sendAll(sequenceKey, { messages: copies, bytes });
    },
  };
}

/** Of a row's ID. */
const ID_LENGTH = 43;
/** What a row has beside its message, generously. */
const ROW_BYTES = 1_000;

/** How many of the first fit in one commit; one alone may be larger, and is refused by the store if it is too large. */
function fitting(sent: readonly Sent[]): number {
  let [bytes, count] = [0, 0];
  for (const [index, one] of sent.entries()) {
    bytes += one.bytes;
    count += one.messages.length;
    if (index > 0 && (bytes > COMMIT_BYTES || count > COMMIT_MESSAGES)) return index;
  }
  return sent.length;
}

/** Google's numeric codes beside the library's own: unknown, deadline exceeded, aborted, internal, unavailable. */
const UNKNOWN_CODES: ReadonlySet<unknown> = new Set([2, 4, 10, 13, 14]);

const isUnknown = (error: unknown): boolean =>
  error instanceof TransientError ||
  (error instanceof Error && 'code' in error && UNKNOWN_CODES.has(error.code));
