/**
 * The kitchen, the pivot: what it confirms is cooked and paid for. It may be too busy to answer, or die when it has just
 * confirmed; then the orchestrator does not know what it decided, asks again, and at last asks it to withdraw.
 */
import type { Publisher } from 'pubsub-guarantees';
import { done, refused } from 'pubsub-guarantees/sagas';
import { serve } from './participant-process.ts';

type Body = Readonly<{ order: string; dish: string }>;

/** `FOOD_KITCHEN_DIES`: with its first reply, which is committed and never leaves this process. */
const dying = (publisher: Publisher): Publisher => ({
  publish: () => {
    process.kill(process.pid, 'SIGKILL');
    return publisher.publish({ topic: 'never', data: Buffer.alloc(0), attributes: {} });
  },
});

await serve(
  'kitchen',
  (firestore, effects) => ({
    kitchen: {
      async do({ order, dish }: Body, { transaction }) {
        if (dish === 'soup') return refused('SOLD_OUT');
        if (dish === 'stew') throw new Error('too busy to answer');
        transaction.set(firestore.collection('food-dishes').doc(order), { dish });
        effects.note(transaction, { order, step: 'kitchen', what: 'do' });
        return done();
      },
    },
  }),
  process.env['FOOD_KITCHEN_DIES'] === undefined ? {} : { replies: dying },
);
