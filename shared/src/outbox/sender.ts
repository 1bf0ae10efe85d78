/**
 * The outbox for publishers without a transaction of their own: numbers and messages in one commit, many messages in each.
 *
 * In a process one transaction is under way for each key; what is sent meanwhile shares the next one. So a hot key costs
 * one commit for many messages, where callers with their own transactions pay one each. What is confirmed is committed
 * and will be published, whoever dies; a rejected send of unknown outcome may be published too.
 */
import { randomUUID } from 'node:crypto';
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

type Waiter = Readonly<{
  messages: readonly OutgoingMessage[];
  bytes: number;
  resolve: (numbers: readonly number[]) => void;
  reject: (error: unknown) => void;
}>;

/** Firestore takes 10 MiB in a request: https://cloud.google.com/firestore/quotas#writes_and_transactions */
const COMMIT_BYTES = 5_000_000;
const COMMIT_MESSAGES = 200;
/** A commit of unknown outcome is asked again under its name, which adds nothing twice. */
const TRIES = 3;

export function outboxSender<Tx extends object>(
  writer: OutboxWriter<Tx>,
  transact: Transact<Tx>,
  options: OutboxOptions = {},
): OutboxSender {
  const box = outbox(writer, options);
  callable('transact', transact);
  const { newId = randomUUID, maxBytes = LIMITS.messageBytes, clock = systemClock() } = options;
  const waiting = new Map<string, Waiter[]>();

  const commit = async (sequenceKey: string, messages: readonly OutgoingMessage[]): Promise<Added> => {
    const id = newId();
    // Here, so that who sends a large message first is numbered first.
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
  const answer = async (batch: readonly Waiter[], { numbers, afterCommit }: Added): Promise<void> => {
    await afterCommit();
    let from = 0;
    for (const { messages, resolve } of batch) {
      resolve(numbers.slice(from, from + messages.length));
      from += messages.length;
    }
  };
  /** Runs until nobody waits for the key any more: one transaction at a time. */
  const serve = async (key: string, waiters: Waiter[]): Promise<void> => {
    while (waiters.length > 0) {
      const batch = waiters.splice(0, fitting(waiters));
      try {
        const added = await commit(
          key,
          batch.flatMap(({ messages }) => messages),
        );
        void answer(batch, added);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    waiting.delete(key);
  };

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
      return new Promise((resolve, reject) => {
        const waiter = { messages: copies, bytes, resolve, reject };
        const queue = waiting.get(sequenceKey);
        queue?.push(waiter);
        if (queue !== undefined) return;
        const fresh = [waiter];
        waiting.set(sequenceKey, fresh);
        void serve(sequenceKey, fresh);
      });
    },
  };
}

/** Of a row's ID. */
const ID_LENGTH = 43;
/** What a row has beside its message, generously. */
const ROW_BYTES = 1_000;

/** How many of the first fit in one commit; one alone may be larger, and is refused by the store if it is too large. */
function fitting(waiters: readonly Waiter[]): number {
  let [bytes, count] = [0, 0];
  for (const [index, waiter] of waiters.entries()) {
    bytes += waiter.bytes;
    count += waiter.messages.length;
    if (index > 0 && (bytes > COMMIT_BYTES || count > COMMIT_MESSAGES)) return index;
  }
  return waiters.length;
}

/** Google's numeric codes beside the library's own: unknown, deadline exceeded, aborted, internal, unavailable. */
const UNKNOWN_CODES: ReadonlySet<unknown> = new Set([2, 4, 10, 13, 14]);

const isUnknown = (error: unknown): boolean =>
  error instanceof TransientError ||
  (error instanceof Error && 'code' in error && UNKNOWN_CODES.has(error.code));
