/**
 * Numbers for ordered streams, without holes: 1, 2, 3, … per key over all processes that share the counters.
 *
 * A number is handed out only after its transaction is committed. In a process one transaction is in flight per key;
 * what asks meanwhile joins the next one, so a hot key costs one transaction for many numbers.
 *
 * A process that dies between taking a number and publishing with it leaves a gap: consumers wait there, visibly.
 */
import { randomUUID } from 'node:crypto';
import { keyedBatch } from '../async/keyed-batch.ts';
import { ATTRIBUTE, parseDeliveryOptions } from '../attributes.ts';
import { PermanentError, TransientError } from '../errors.ts';
import { byteLength, checkOutgoing, LIMITS, type OutgoingMessage } from '../message.ts';
import type { Publisher } from '../publish/publisher.ts';
import type { CounterStore, NumberRange } from './counter-store.ts';
import {
  anything,
  anyText,
  callable,
  checkOptions,
  listOf,
  port,
  publisher as aPublisher,
  whole,
} from '../options.ts';

export type SequencerOptions = Readonly<{
  /**
   * How often a request for numbers is sent at most, the first time included: one of unknown outcome is sent again under
   * the same ID (default 3, at least 1).
   */
  maxAttempts?: number;
  /** Mints request IDs and epochs (default: random UUIDs). */
  newId?: () => string;
}>;

export type Numbered = Readonly<{ key: string; number: number; epoch: string }>;

/** Each method rejects with ConfigError `INVALID_OPTION` for an argument that is not of its type, and takes no number. */
export type Sequencer = Readonly<{
  /**
   * The next number of `key` (1 to 1,024 bytes). Rejects with TransientError: `SEQUENCE_CONTENTION` (nothing was
   * taken) or `STORE_UNAVAILABLE` (unknown: a number may be lost, which consumers see as a gap).
   */
  next(key: string): Promise<Numbered>;
  /**
   * The message with the next number of `key` in its attributes. If publishing it fails, publish this same message
   * again: its number is taken, and another number would leave a gap.
   */
  number(key: string, message: OutgoingMessage): Promise<OutgoingMessage>;
  /**
   * The same for several messages: their numbers follow each other, in the order of the list, out of one reservation.
   * Nothing is taken for an empty list, or when one of them is refused.
   */
  numberBatch(key: string, messages: readonly OutgoingMessage[]): Promise<readonly OutgoingMessage[]>;
  /** Numbers and publishes. After a rejected publish the number stays taken: use `number` to be able to try again. */
  publish(publisher: Publisher, key: string, message: OutgoingMessage): Promise<string>;
  /**
   * Numbers all of them with one reservation and publishes them together; the message IDs in the order of the list.
   * Rejects with the first failure once every publish is answered; the others may have been published: use
   * `numberBatch` to be able to publish those that failed again.
   */
  publishBatch(
    publisher: Publisher,
    key: string,
    messages: readonly OutgoingMessage[],
  ): Promise<readonly string[]>;
}>;

/**
 * Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * const numbers = sequencer(firestoreCounters(firestore));
 * await numbers.publish(publisher, 'order-42', { topic: 'orders', data: Buffer.from('x'), attributes: {} });
 */
export function sequencer(counters: CounterStore, options: SequencerOptions = {}): Sequencer {
  port(['take'], 'a store of counters, for example firestoreCounters(firestore)')('counters', counters);
  checkOptions<SequencerOptions>(options, { maxAttempts: whole(1), newId: callable });
  const { maxAttempts = 3, newId = randomUUID } = options;
  const take = keyedBatch<number, Numbered>({
    async run(key, counts) {
      const total = counts.reduce((sum, count) => sum + count, 0);
      const { first, epoch } = await takeRange(counters, key, total, maxAttempts, newId);
      let number = first;
      return counts.map((count) => {
        number += count;
        return { key, number: number - count, epoch };
      });
    },
  });
  const reserve = async (key: string, count: number): Promise<Numbered> => {
    checkSequenceKey(key);
    return take(key, count);
  };

  const numberBatch = async (
    key: string,
    messages: readonly OutgoingMessage[],
  ): Promise<readonly OutgoingMessage[]> => {
    checkSequenceKey(key);
    someMessages('messages', messages);
    // Refused before a number is taken: a message that no topic or consumer takes would leave a gap.
    const longest = { key, number: Number.MAX_SAFE_INTEGER, epoch: newId() };
    for (const message of messages) {
      // As it is given, too: what is added would make a message of one that is empty, or that has no attributes.
      checkOutgoing(message);
      const whole = withNumber(message, longest);
      checkOutgoing(whole);
      parseDeliveryOptions({ ...whole, publishTime: new Date() });
    }
    if (messages.length === 0) return [];
    const first = await reserve(key, messages.length);
    return messages.map((message, index) => withNumber(message, { ...first, number: first.number + index }));
  };
  const number = async (key: string, message: OutgoingMessage): Promise<OutgoingMessage> => {
    const [numbered] = await numberBatch(key, [message]);
    return numbered ?? message;
  };

  return {
    next: (key) => reserve(key, 1),
    number,
    numberBatch,
    async publish(publisher, key, message) {
      aPublisher('publisher', publisher);
      return publisher.publish(await number(key, message));
    },
    async publishBatch(publisher, key, messages) {
      aPublisher('publisher', publisher);
      const numbered = await numberBatch(key, messages);
      const answers = await Promise.allSettled(numbered.map((message) => publisher.publish(message)));
      return answers.map((answer) => {
        if (answer.status === 'rejected') throw answer.reason;
        return answer.value;
      });
    },
  };
}

/** Each message is checked as one that a topic takes. */
const someMessages = listOf(anything, 'a list of messages');

/** The request keeps its ID over the attempts, so one that was applied gives its numbers instead of new ones. */
async function takeRange(
  counters: CounterStore,
  key: string,
  count: number,
  maxAttempts: number,
  newId: () => string,
): Promise<NumberRange> {
  const request = { id: newId(), count, epoch: newId() };
  for (let left = maxAttempts; ; left -= 1) {
    try {
      return await counters.take(key, request);
    } catch (error) {
      const isUnknown = error instanceof TransientError && error.code === 'STORE_UNAVAILABLE';
      if (left <= 1 || !isUnknown) throw error;
    }
  }
}

/** For code that gives numbers another way: the outbox takes them in the caller's own transaction. */
export const withNumber = (message: OutgoingMessage, { key, number, epoch }: Numbered): OutgoingMessage => ({
  ...message,
  attributes: {
    ...message.attributes,
    [ATTRIBUTE.sequence]: String(number),
    [ATTRIBUTE.sequenceKey]: key,
    [ATTRIBUTE.sequenceEpoch]: epoch,
  },
});

export function checkSequenceKey(key: string): void {
  anyText('sequenceKey', key);
  const bytes = byteLength(key);
  if (!key.isWellFormed() || bytes < 1 || bytes > LIMITS.attributeValueBytes) {
    throw new PermanentError(
      'INVALID_MESSAGE',
      `the sequenceKey has ${bytes} bytes; accepted: well-formed text of 1 to ${LIMITS.attributeValueBytes}`,
    );
  }
}
