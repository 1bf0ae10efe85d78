/** The ways to give the messages of one key their numbers. Each answers the number once it is committed. */
import { randomUUID } from 'node:crypto';
import type { Firestore } from '@google-cloud/firestore';
import type { OutgoingMessage, Publisher } from 'pubsub-guarantees';
import { outbox, outboxSender } from 'pubsub-guarantees/outbox';
import { sequencer } from 'pubsub-guarantees/sequence';
import { firestoreCounters } from 'pubsub-guarantees/order/firestore';
import { firestoreOutbox } from 'pubsub-guarantees/outbox/firestore';

type Publish = (key: string) => Promise<number>;

const MESSAGE: OutgoingMessage = {
  topic: 'projects/bench/topics/bench',
  data: Buffer.from('{"order":17,"state":"paid"}'),
  attributes: {},
};

export const WAYS = {
  /** Numbers and publishes; publishing itself is left out, so that nothing but the numbers is measured. */
  sequencer(firestore: Firestore): Publish {
    const { publish } = sequencer(firestoreCounters(firestore));
    const publisher: Publisher = {
      publish: async ({ attributes }) => String(attributes['sequence']),
    };
    return async (key) => Number(await publish(publisher, key, MESSAGE));
  },

  /** The article's: a transaction for each number. */
  plain(firestore: Firestore): Publish {
    const counters = firestore.collection('plain-counters');
    return (key) =>
      firestore.runTransaction(async (transaction) => {
        const counter = counters.doc(key);
        const found = await transaction.get(counter);
        const next = Number(found.get('next') ?? 1);
        transaction.set(counter, { next: next + 1 });
        return next;
      });
  },

  /** The caller's own transaction, with a write of its own. */
  reserve(firestore: Firestore): Publish {
    const box = outbox(firestoreOutbox(firestore));
    const orders = firestore.collection('orders');
    return async (sequenceKey) => {
      const { numbers } = await firestore.runTransaction(async (transaction) => {
        const slot = await box.reserve(transaction, { sequenceKey });
        transaction.set(orders.doc(randomUUID()), { state: 'paid' });
        return slot.add(MESSAGE);
      });
      return numbers[0] ?? Number.NaN;
    };
  },

  /** The outbox for callers without a transaction. The relay is left out. */
  sender(firestore: Firestore): Publish {
    const { send } = outboxSender(firestoreOutbox(firestore), (work) => firestore.runTransaction(work));
    return async (key) => (await send(key, MESSAGE))[0] ?? Number.NaN;
  },
} as const;

export type WayName = keyof typeof WAYS;
