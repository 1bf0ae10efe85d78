/** Couriers: one is found, or none goes there. This is the step that is refused most often. `couriers.py` does the same. */
import { done, refused, undone } from 'pubsub-guarantees/sagas';
import { serve } from './participant-process.ts';

type Body = Readonly<{ order: string; to?: string }>;

const COURIERS = ['Ada', 'Grace', 'Katherine'];

await serve('couriers', (firestore, effects) => {
  const rides = firestore.collection('food-rides');
  return {
    courier: {
      async do({ order, to = '' }: Body, { transaction }) {
        if (to === 'far side') return refused('NO_COURIER');
        const courier = COURIERS[order.length % COURIERS.length] ?? 'Ada';
        transaction.set(rides.doc(order), { courier, to });
        effects.note(transaction, { order, step: 'courier', what: 'do' });
        return done({ courier });
      },
      async undo({ order }: Body, { transaction }) {
        transaction.delete(rides.doc(order));
        effects.note(transaction, { order, step: 'courier', what: 'undo' });
        return undone();
      },
    },
  };
});
