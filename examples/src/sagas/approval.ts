/* oxlint-disable no-console -- an example shows what it does */
/**
 * A saga that waits for a person: three expenses, of which one is approved after three days, one is refused after five, and
 * one is never answered and cancelled by its deadline after ten. The days pass on the clock of the local stack, in
 * seconds.
 *
 * Run it beside `npm start`, with the variables that it prints, and LOCAL_STACK_CONTROL, the address of its control API. It
 * moves the clock of the stack by eleven days.
 */
import { randomUUID } from 'node:crypto';
import { Firestore, type Transaction } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { silent } from 'pubsub-guarantees';
import { inbox, type InboxHandler } from 'pubsub-guarantees/dedup';
import { firestoreInbox } from 'pubsub-guarantees/dedup/firestore';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { receive } from 'pubsub-guarantees/receive/pubsub';
import { done, participant, sagas, type SagaView, undone } from 'pubsub-guarantees/sagas';
import { firestoreSagas, firestoreStepRecords } from 'pubsub-guarantees/sagas/firestore';
import { localProject } from '../local-stack.ts';
import { approvals } from './approvals.ts';
import { type Expense, expense } from './expense.ts';
import { ORCHESTRATOR, sagaTopic } from './topology.ts';

const DAY_MS = 86_400_000;

const control = process.env['LOCAL_STACK_CONTROL'];
if (control === undefined)
  throw new Error('LOCAL_STACK_CONTROL is not set; accepted: the address of the control API');
const projectId = await localProject('PUBSUB_EMULATOR_HOST', 'FIRESTORE_EMULATOR_HOST');
const pubsub = new PubSub({ projectId });
const firestore = new Firestore({ projectId });
const publisher = pubsubPublisher(pubsub);
const replyTo = sagaTopic(projectId);

type Body = Readonly<{ id: string; reserve?: number; transfer?: number }>;
const budgets = firestore.collection('expense-budgets');
const budget = participant<Transaction>(firestoreStepRecords(firestore), {
  replyTo: [replyTo],
  steps: {
    budget: {
      async do({ id, reserve }: Body, { transaction }) {
        transaction.set(budgets.doc(id), { reserved: reserve, state: 'reserved' });
        return done();
      },
      async undo({ id }: Body, { transaction }) {
        transaction.update(budgets.doc(id), { state: 'released' });
        return undone();
      },
    },
    transfer: {
      async do({ id }: Body, { transaction }) {
        transaction.update(budgets.doc(id), { state: 'transferred' });
        return done();
      },
    },
  },
});

async function serve(name: string, handler: InboxHandler<Transaction>) {
  const [topic] = await pubsub.createTopic(name);
  const [subscription] = await topic.createSubscription(name);
  const handle = inbox(firestoreInbox(firestore), { publisher })(handler);
  // This process keeps the machine's time, and would say of each message that it comes from days ahead.
  return receive(subscription, handle, { consumer: name, log: silent });
}
const people = approvals(firestore, { publisher, topic: 'expense-approvals', replyTo });
const receivers = [await serve('expense-budget', budget), await serve('expense-approvals', people.handler)];
const operator = sagas(firestoreSagas(firestore), { consumer: ORCHESTRATOR, topic: replyTo, publisher });

const run = randomUUID().slice(0, 8);
const [book, yacht, lamp] = [
  { id: `book-${run}`, amount: 3_000, what: 'a book' },
  { id: `yacht-${run}`, amount: 90_000_000, what: 'a yacht' },
  { id: `lamp-${run}`, amount: 4_500, what: 'a lamp' },
] as const satisfies readonly Expense[];
for (const one of [book, yacht, lamp])
  await publisher.publish(expense.start(one.id, one, { topic: replyTo }));

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50));
}
const viewOf = async (id: string): Promise<SagaView> => {
  const view = await operator.inspect(expense.name, id);
  if (view === undefined) throw new Error(`there is no saga ${id}`);
  return view;
};
const show = async ({ id, what }: Expense): Promise<void> => {
  const { state, startedAt, changedAt, reason } = await viewOf(id);
  const days = Math.round((changedAt.getTime() - startedAt.getTime()) / DAY_MS);
  const kept = (await budgets.doc(id).get()).get('state') as string;
  console.log(
    `${what}: ${state} after ${days} days${reason === undefined ? '' : ` (${reason})`}; budget ${kept}`,
  );
};

await until(async () => (await people.waiting()).filter((id) => id.endsWith(run)).length === 3);
for (let day = 1; day <= 11; day += 1) {
  const moved = await fetch(`${control}/clock/advance`, { method: 'POST', body: '{"by":"1d"}' });
  if (!moved.ok) throw new Error(`the clock was not moved: ${await moved.text()}`);
  if (day === 3) await people.decide(book.id, true);
  if (day === 5) await people.decide(yacht.id, false);
  if (day === 3) await until(async () => (await viewOf(book.id)).isEnded);
  if (day === 5) await until(async () => (await viewOf(yacht.id)).isEnded);
}
await until(async () => (await viewOf(lamp.id)).isEnded);
for (const one of [book, yacht, lamp]) await show(one);

await Promise.all(receivers.map((receiver) => receiver.close()));
await publisher.close();
await pubsub.close();
await firestore.terminate();
