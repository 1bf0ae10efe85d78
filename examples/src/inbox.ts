/* oxlint-disable no-console -- an example shows what it does */
/**
 * Inbox: a payment is published three times, and the balance in Firestore grows once. The handler's write, the record
 * that the message is done and the receipt that it sends are one commit, so that no crash leaves one without the others.
 *
 * Run it beside `npm start`, with the two variables that it prints:
 *
 *   PUBSUB_EMULATOR_HOST=… FIRESTORE_EMULATOR_HOST=… npm exec -- node --conditions=source examples/src/inbox.ts
 */
import { randomUUID } from 'node:crypto';
import { FieldValue, Firestore, type Transaction } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { ack, compose, type Middleware, outgoing } from 'pubsub-guarantees';
import { inbox, type InboxHandler } from 'pubsub-guarantees/dedup';
import { relay } from 'pubsub-guarantees/outbox';
import { firestoreInbox } from 'pubsub-guarantees/dedup/firestore';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { receive } from 'pubsub-guarantees/receive/pubsub';
import { localProject } from './local-stack.ts';

const projectId = await localProject('PUBSUB_EMULATOR_HOST', 'FIRESTORE_EMULATOR_HOST');
const pubsub = new PubSub({ projectId });
const firestore = new Firestore({ projectId });
const publisher = pubsubPublisher(pubsub);
const id = randomUUID();
const [payments] = await pubsub.createTopic(`example-payments-${id}`);
const [receipts] = await pubsub.createTopic(`example-receipts-${id}`);
const [subscription] = await payments.createSubscription(`example-payments-${id}`);
const [mail] = await receipts.createSubscription(`example-receipts-${id}`);
const account = firestore.doc(`example-accounts/${id}`);

// The handler: it may run more than once, and writes through the transaction alone.
const book: InboxHandler<Transaction> = async (message, { transaction }) => {
  const { amount } = JSON.parse(message.data.toString()) as { amount: number };
  const before = Number((await transaction.get(account)).get('balance') ?? 0);
  const fields = { balance: before + amount, payments: FieldValue.increment(1) };
  transaction.set(account, fields, { merge: true });
  return ack('handled', [outgoing(receipts.name, { data: `received: ${amount} EUR` })]);
};
// The guarantee. Elsewhere, every minute or so: relay(store.outbox, publisher).sweep(…), for what a crash left behind.
const store = firestoreInbox(firestore);
const once = inbox(store, { publisher })(book);

const outcomes: string[] = [];
const finished = Promise.withResolvers<void>();
const watch: Middleware = (next) => async (message, context) => {
  const outcome = await next(message, context);
  outcomes.push(outcome.kind === 'ack' ? outcome.reason : outcome.kind);
  if (outcomes.length === 3) finished.resolve();
  return outcome;
};
const receiver = receive(subscription, compose(once, [watch]), { consumer: 'example-ledger' });
const received: string[] = [];
mail.on('message', (receipt) => {
  received.push(receipt.data.toString());
  receipt.ack();
});

const payment = outgoing(payments.name, { data: '{"amount":10}', dedupId: 'payment-order-42' });
for (let attempt = 1; attempt <= 3; attempt += 1) await publisher.publish(payment);

await finished.promise;
// Receipts are published before their payment is acknowledged; a little later they have arrived.
for (let wait = 0; wait < 50 && received.length === 0; wait += 1)
  await new Promise((resolve) => setTimeout(resolve, 100));
const stored = await account.get();
console.log(`deliveries: ${outcomes.toSorted().toReversed().join(', ')}`);
console.log(`payments booked: ${stored.get('payments')}, balance: ${stored.get('balance')} EUR`);
console.log(`receipts: ${received.join(', ')}`);
const { due: pending } = await relay(store.outbox, publisher).sweep({ signal: new AbortController().signal });
console.log(`left in the outbox: ${pending}`);

await receiver.close();
await mail.close();
await publisher.close();
await Promise.all([subscription.delete(), mail.delete()]);
await Promise.all([payments.delete(), receipts.delete()]);
await pubsub.close();
await firestore.terminate();
