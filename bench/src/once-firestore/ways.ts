/**
 * The two ways to keep a handler from running twice: the middleware, and the transaction that most articles show. That one
 * writes that a message was seen before the work is done, so a crash in the handler loses it, and nothing says so.
 */
import type { Firestore } from '@google-cloud/firestore';
import { ack, type Context, compose, type Log, type Message } from 'pubsub-guarantees';
import { dedup } from 'pubsub-guarantees/dedup';
import { firestoreClaims } from 'pubsub-guarantees/dedup/firestore';

export type Delivery = Readonly<{
  /** From the delivery to the first line of the handler; undefined when it did not run. */
  beforeMs: number | undefined;
  wholeMs: number;
  isDuplicate: boolean;
}>;

export type Way = (message: Message) => Promise<Delivery>;

const DELIVERY_MS = 60_000;
const [CONSUMER, SOURCE] = ['bench', 'projects/bench/subscriptions/bench'];

export const messageOf = (id: string): Message => ({
  id,
  data: Buffer.from('{"order":1}'),
  attributes: {},
  publishTime: new Date(),
});

/** Claim, handler, complete. */
export function claimed(firestore: Firestore, log: Log): Way {
  const started = new WeakMap<Message, number>();
  const handler = compose(
    async (message) => {
      started.set(message, performance.now());
      return ack();
    },
    [dedup(firestoreClaims(firestore))],
  );
  return async (message) => {
    const begun = performance.now();
    const context: Context = {
      consumer: CONSUMER,
      source: SOURCE,
      now: () => Date.now(),
      deadline: begun + DELIVERY_MS,
      signal: new AbortController().signal,
      log,
    };
    const outcome = await handler(message, context);
    const wholeMs = performance.now() - begun;
    if (outcome.kind !== 'ack') throw new Error(`${message.id}: ${outcome.kind}`, { cause: outcome.error });
    const start = started.get(message);
    const beforeMs = start === undefined ? undefined : start - begun;
    return { beforeMs, wholeMs, isDuplicate: outcome.reason === 'duplicate' };
  };
}

/** Get, then set, in a transaction; then the handler, and nothing after it. */
export function getThenSet(firestore: Firestore): Way {
  const seen = firestore.collection('seen-messages');
  const handler = async (): Promise<number> => performance.now();
  return async (message) => {
    const begun = performance.now();
    const document = seen.doc(message.id);
    const isDuplicate = await firestore.runTransaction(async (transaction) => {
      if ((await transaction.get(document)).exists) return true;
      transaction.set(document, { consumer: CONSUMER, seenAt: new Date() });
      return false;
    });
    const beforeMs = isDuplicate ? undefined : (await handler()) - begun;
    return { beforeMs, wholeMs: performance.now() - begun, isDuplicate };
  };
}
