/* oxlint-disable no-console -- an example shows what it does */
/**
 * In order: three publishers take numbers of one stream, publish them as chance will have it, and the subscriber's
 * handler sees 1, 2, 3, ….
 *
 * Needs neither ordering keys nor a function: the resequencer is a middleware around the subscriber's own handler.
 * Run it beside `npm start`, with the two variables that it prints:
 *
 *   PUBSUB_EMULATOR_HOST=… FIRESTORE_EMULATOR_HOST=… npm exec -- node --conditions=source examples/src/in-order.ts
 */
import { randomUUID } from 'node:crypto';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { ack, compose, consoleLog, type Handler, outgoing, sleep, systemClock } from 'pubsub-guarantees';
import { orderedDelivery } from 'pubsub-guarantees/order';
import { sequencer } from 'pubsub-guarantees/sequence';
import { firestoreCounters, firestoreStreams } from 'pubsub-guarantees/order/firestore';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { receive } from 'pubsub-guarantees/receive/pubsub';
import { localProject } from './local-stack.ts';

const STEPS = 12;

const projectId = await localProject('PUBSUB_EMULATOR_HOST', 'FIRESTORE_EMULATOR_HOST');
const clock = systemClock();
const pubsub = new PubSub({ projectId });
const firestore = new Firestore({ projectId });
const run = randomUUID();
const [topic] = await pubsub.createTopic(`example-in-order-${run}`);
const [subscription] = await topic.createSubscription(`example-in-order-${run}`);

// The subscriber: its own handler, in order.
const seen: string[] = [];
const finished = Promise.withResolvers<void>();
const ship: Handler = async (message) => {
  seen.push(message.attributes['sequence'] ?? '?');
  console.log(`${message.attributes['sequence']}: ${message.data.toString()}`);
  if (seen.length === STEPS) finished.resolve();
  return ack();
};
const streams = orderedDelivery(firestoreStreams(firestore));
const consumer = 'example-shipping';
const receiver = receive(subscription, compose(ship, [streams.middleware]), { consumer });

// Its sweep, with the same handler: tries a number again that failed, takes over from a process that died, looks at old
// gaps. Every minute will do.
const sweep = streams.sweep(ship);
const stopping = new AbortController();
async function sweeps({ signal }: AbortController): Promise<void> {
  while (!signal.aborted) {
    const deadline = clock.monotonic() + 60_000;
    const context = { consumer, now: () => clock.now(), deadline, signal, log: consoleLog() };
    await sweep(context).catch((error: Error) => console.error(error.message));
    await sleep(clock, 1_000, signal);
  }
}
const swept = sweeps(stopping);

// Three publishers: each takes the next number of the order's stream and publishes when it gets round to it.
const publisher = pubsubPublisher(pubsub);
const numbers = sequencer(firestoreCounters(firestore));
const published: string[] = [];
const publishers = ['anna', 'ben', 'cleo'].map(async (person) => {
  for (let step = 0; step < STEPS / 3; step += 1) {
    const message = await numbers.number(`order-${run}`, outgoing(topic.name, { data: `step by ${person}` }));
    await sleep(clock, Math.random() * 300);
    await publisher.publish(message);
    published.push(message.attributes['sequence'] ?? '?');
  }
});
await Promise.all(publishers);

await finished.promise;
console.log(`published as ${published.join(', ')}; handled as ${seen.join(', ')}`);

stopping.abort();
await swept;
await receiver.close();
await streams.stop();
await publisher.close();
await subscription.delete();
await topic.delete();
await pubsub.close();
await firestore.terminate();
