/** Payments: an amount is reserved and, once the kitchen has confirmed, collected. A reservation can be released. */
import { done, undone } from 'pubsub-guarantees/sagas';
import { serve } from './participant-process.ts';

type Body = Readonly<{ order: string; reserve?: number; collect?: number }>;

await serve('payments', (firestore, effects) => {
  const payments = firestore.collection('food-payments');
  return {
    payment: {
      async do({ order, reserve = 0 }: Body, { transaction }) {
        transaction.set(payments.doc(order), { reserved: reserve, state: 'reserved' });
        effects.note(transaction, { order, step: 'payment', what: 'do' });
        return done();
      },
      async undo({ order }: Body, { transaction }) {
        transaction.update(payments.doc(order), { state: 'released' });
        effects.note(transaction, { order, step: 'payment', what: 'undo' });
        return undone();
      },
    },
    collect: {
      async do({ order, collect = 0 }: Body, { transaction }) {
        transaction.update(payments.doc(order), { collected: collect, state: 'collected' });
        effects.note(transaction, { order, step: 'collect', what: 'do' });
        return done();
      },
    },
  };
});
