/* oxlint-disable no-console -- an example shows what it does */
/**
 * The outbox: orders and the events about them are committed together, numbered, and published afterwards by a relay.
 * One order fails halfway: neither it nor its event exists, and its number was not taken.
 *
 * Run it beside `npm start`, with the two variables that it prints:
 *
 *   PUBSUB_EMULATOR_HOST=… FIRESTORE_EMULATOR_HOST=… npm exec -- node --conditions=source examples/src/outbox.ts
 */
import { randomUUID } from 'node:crypto';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { outgoing } from 'pubsub-guarantees';
import { type Added, outbox, relay } from 'pubsub-guarantees/outbox';
import { firestoreOutbox } from 'pubsub-guarantees/outbox/firestore';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { localProject } from './local-stack.ts';

const projectId = await localProject('PUBSUB_EMULATOR_HOST', 'FIRESTORE_EMULATOR_HOST');
const pubsub = new PubSub({ projectId });
const firestore = new Firestore({ projectId });
const run = randomUUID();
const [topic] = await pubsub.createTopic(`example-outbox-${run}`);
const [subscription] = await topic.createSubscription(`example-outbox-${run}`);

const publisher = pubsubPublisher(pubsub);
const store = firestoreOutbox(firestore);
const relayed = relay(store, publisher);
const box = outbox(store, { relay: relayed });
const customer = `customer-${run}`;

async function order(what: string, isPaid: boolean): Promise<Added> {
  const document = firestore.collection('example-orders').doc();
  return firestore.runTransaction(async (transaction) => {
    // Reads come first: the outbox looks at the customer's counter.
    const slot = await box.reserve(transaction, { sequenceKey: customer });
    if (!slot.isRepeat) transaction.create(document, { customer, what });
    if (!isPaid) throw new Error(`${what}: the payment was refused`);
    return slot.add(outgoing(topic.name, { data: `ordered: ${what}` }));
  });
}

// Right after the commit, by the publisher itself.
const first = await order('a book', true);
await first.afterCommit();
await order('a yacht', false).catch((error: Error) => console.log(error.message));
// As if this process had died after its commit: the next pass publishes the row, this one’s or the local stack’s.
await order('a pen', true);
await relayed.sweep({ signal: new AbortController().signal });
console.log('left behind, and published by a pass:');

const finished = Promise.withResolvers<void>();
const seen: string[] = [];
subscription.on('message', (message) => {
  message.ack();
  seen.push(`${message.attributes['sequence']} ${message.data.toString()}`);
  if (seen.length === 2) finished.resolve();
});
await finished.promise;
for (const line of seen.toSorted()) console.log(line);

await subscription.close();
await publisher.close();
await subscription.delete();
await topic.delete();
await pubsub.close();
await firestore.terminate();
