/**
 * An expense, as data and pure functions: the budget is reserved, a person approves, which decides, and the money is
 * transferred. The person may take days: the approval is asked for once a day, and after ten days the deadline cancels
 * the saga.
 */
import { defineSaga } from 'pubsub-guarantees/sagas';

export type Expense = Readonly<{
  id: string;
  /** In cents. */
  amount: number;
  what: string;
}>;

export const expense = defineSaga<Expense>('expense', { version: 1, deadline: '10d' })
  .compensable('budget', {
    topic: 'expense-budget',
    do: ({ id, amount }) => ({ id, reserve: amount }),
    undo: ({ id }) => ({ id }),
  })
  // More attempts than the deadline has days: the deadline decides.
  .pivot('approval', {
    topic: 'expense-approvals',
    do: ({ id, amount, what }) => ({ id, amount, what }),
    replyTimeout: '1d',
    maxAttempts: 20,
  })
  .retriable('transfer', { topic: 'expense-budget', do: ({ id, amount }) => ({ id, transfer: amount }) });
