/* oxlint-disable no-console -- an example shows what it does */
/**
 * Once: a payment is published three times, and the subscriber's handler charges once.
 *
 * The subscriber needs no function in front of it: the guarantee is a middleware around its own handler. Run it beside
 * `npm start`, with the two variables that it prints:
 *
 *   PUBSUB_EMULATOR_HOST=… FIRESTORE_EMULATOR_HOST=… npm exec -- node --conditions=source examples/src/once.ts
 */
import { randomUUID } from 'node:crypto';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { ack, compose, type Handler, type Middleware, outgoing } from 'pubsub-guarantees';
import { dedup } from 'pubsub-guarantees/dedup';
import { firestoreClaims } from 'pubsub-guarantees/dedup/firestore';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { receive } from 'pubsub-guarantees/receive/pubsub';
import { localProject } from './local-stack.ts';

const projectId = await localProject('PUBSUB_EMULATOR_HOST', 'FIRESTORE_EMULATOR_HOST');
const pubsub = new PubSub({ projectId });
const firestore = new Firestore({ projectId });
const name = `example-once-${randomUUID()}`;
const [topic] = await pubsub.createTopic(name);
const [subscription] = await topic.createSubscription(name);

// The subscriber: its own handler …
const charge: Handler = async (message) => {
  console.log(`charging: ${message.data.toString()}`);
  return ack();
};
// … what became of each delivery, so that this example knows when to end …
const outcomes: string[] = [];
const finished = Promise.withResolvers<void>();
const watch: Middleware = (next) => async (message, context) => {
  const outcome = await next(message, context);
  outcomes.push(outcome.kind === 'ack' ? outcome.reason : outcome.kind);
  if (outcomes.length === 3) finished.resolve();
  return outcome;
};
// … and the guarantee between the two.
const once = dedup(firestoreClaims(firestore));
const receiver = receive(subscription, compose(charge, [watch, once]), { consumer: 'example-billing' });

// The publisher: a name of its own for the message makes every repeat recognisable, also one after a lost answer.
const publisher = pubsubPublisher(pubsub);
const payment = outgoing(name, { data: 'order 42, 19.90 EUR', dedupId: 'payment-order-42' });
for (let attempt = 1; attempt <= 3; attempt += 1) await publisher.publish(payment);

await finished.promise;
console.log(`published 3 times; deliveries: ${outcomes.toSorted().toReversed().join(', ')}`);

await receiver.close();
await publisher.close();
await subscription.delete();
await topic.delete();
await pubsub.close();
await firestore.terminate();
