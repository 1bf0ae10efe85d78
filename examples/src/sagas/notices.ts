/** Notices: the customer is told. Asked again without limit until it is done, and done once. */
import { done } from 'pubsub-guarantees/sagas';
import { serve } from './participant-process.ts';

type Body = Readonly<{ order: string; text: string }>;

await serve('notices', (firestore, effects) => ({
  notify: {
    async do({ order, text }: Body, { transaction }) {
      transaction.set(firestore.collection('food-notices').doc(order), { text });
      effects.note(transaction, { order, step: 'notify', what: 'do' });
      return done();
    },
  },
}));
