/* oxlint-disable no-console -- an example shows what it does */
/**
 * Choreography: three food orders over three services in processes of their own, without an orchestrator. What has happened is
 * read from the traces that each service leaves; an order without an end is all that tells of a choreography that is stuck.
 *
 * Run it beside `npm start`, with the two variables that it prints:
 *
 *   PUBSUB_EMULATOR_HOST=… FIRESTORE_EMULATOR_HOST=… npm exec -- node --conditions=source examples/src/sagas/choreographed.ts
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { outgoing } from 'pubsub-guarantees';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { sagaTraces, type TraceNode } from 'pubsub-guarantees/sagas';
import { firestoreTraces } from 'pubsub-guarantees/sagas/firestore';
import { localProject } from '../local-stack.ts';
import { type EventName, EVENTS, eventTopic, LISTENS } from './choreography.ts';
import type { FoodOrder } from './food-order.ts';

const projectId = await localProject('PUBSUB_EMULATOR_HOST', 'FIRESTORE_EMULATOR_HOST');
const pubsub = new PubSub({ projectId });
const firestore = new Firestore({ projectId });
const publisher = pubsubPublisher(pubsub);
for (const event of EVENTS) await pubsub.createTopic(eventTopic(event));
for (const listens of Object.values(LISTENS)) {
  for (const [event, name] of Object.entries(listens))
    await pubsub.topic(eventTopic(event as EventName)).createSubscription(name);
}
const file = fileURLToPath(new URL('./choreographed-service.ts', import.meta.url));
const services = Object.keys(LISTENS).map((name) =>
  spawn(process.execPath, ['--conditions=source', file, name], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  }),
);
await Promise.all(services.map((service) => once(service, 'message')));

const run = randomUUID().slice(0, 8);
const orders: readonly FoodOrder[] = [
  { id: `rice-${run}`, total: 1_250, to: 'High Street', dish: 'rice' },
  { id: `far-${run}`, total: 990, to: 'far side', dish: 'rice' },
  { id: `soup-${run}`, total: 1_490, to: 'Mill Lane', dish: 'soup' },
];
for (const order of orders)
  await publisher.publish(outgoing(eventTopic('placed'), { data: JSON.stringify(order), dedupId: order.id }));

const traces = sagaTraces(firestoreTraces(firestore));
/** Each service with what it published, and below it what that caused. */
const tree = (nodes: readonly TraceNode[], depth = 1): readonly string[] =>
  nodes.flatMap(({ consumer, sent, caused }) => [
    `${'  '.repeat(depth)}${consumer}${sent.length === 0 ? '' : ` → ${sent.map((topic) => topic.split('-').at(-1)).join(', ')}`}`,
    ...tree(caused, depth + 1),
  ]);
for (const { id } of orders) {
  let view = await traces.of(id);
  while (view?.end === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    view = await traces.of(id);
  }
  const { payment } = (await firestore.collection('food-choreographed').doc(id).get()).data() ?? {};
  console.log(`${id.split('-')[0]}: ${view.end}, payment ${payment}`);
  console.log(tree(view.messages).join('\n'));
}
const { open } = await traces.open({ olderThan: '1ms' });
console.log(`without an end: ${open.filter(({ correlationId }) => correlationId.endsWith(run)).length}`);

for (const service of services) service.kill('SIGKILL');
await publisher.close();
await pubsub.close();
await firestore.terminate();
