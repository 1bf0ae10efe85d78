/**
 * A food order, as data and pure functions: the payment is reserved, a courier is found, the kitchen confirms, which
 * decides; then the payment is collected and the customer is told. The function `saga` of `npm start` runs it, and
 * the programs beside this file are its participants.
 *
 * The waits are short, so that a run shows what happens when nothing answers. An order of a real shop waits for minutes.
 */
import { defineSaga } from 'pubsub-guarantees/sagas';

export type FoodOrder = Readonly<{
  id: string;
  /** In cents. */
  total: number;
  /** Where it is to be brought. No courier goes to the `far side`. */
  to: string;
  /** What is ordered. The kitchen has no `soup`, and is too busy to answer about `stew`. */
  dish: string;
}>;

/** After the kitchen was asked that often, it is asked to withdraw. */
const KITCHEN_ATTEMPTS = 2;

export const foodOrder = defineSaga<FoodOrder>('food-order', { version: 1, deadline: '2m' })
  .compensable('payment', {
    topic: 'food-payments',
    do: ({ id, total }) => ({ order: id, reserve: total }),
    undo: ({ id }) => ({ order: id }),
    replyTimeout: '5s',
    maxAttempts: 10,
  })
  .compensable('courier', {
    topic: 'food-couriers',
    do: ({ id, to }) => ({ order: id, to }),
    undo: ({ id }) => ({ order: id }),
    replied: (order, reply) => ({ ...order, courier: (reply as { courier: string }).courier }),
    replyTimeout: '5s',
    maxAttempts: 10,
  })
  .pivot('kitchen', {
    topic: 'food-kitchen',
    do: ({ id, dish }) => ({ order: id, dish }),
    replyTimeout: '5s',
    maxAttempts: KITCHEN_ATTEMPTS,
  })
  .retriable('collect', {
    topic: 'food-payments',
    do: ({ id, total }) => ({ order: id, collect: total }),
    replyTimeout: '5s',
  })
  .retriable('notify', {
    topic: 'food-notices',
    do: ({ id, courier }) => ({ order: id, text: `${courier} brings your order` }),
    replyTimeout: '5s',
  });
