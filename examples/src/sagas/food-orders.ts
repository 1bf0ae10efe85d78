/* oxlint-disable no-console -- an example shows what it does */
/**
 * Sagas: four orders, of which two are completed and two are compensated, over four participants in processes of their own
 * and the orchestrator of `npm start`. One of the orders is in doubt on the way: its kitchen does not answer.
 *
 * Run it beside `npm start`, with the variables that it prints; `FOOD_COURIERS=python3` takes `couriers.py` for one of the
 * participants, which needs LOCAL_STACK_CONTROL as well:
 *
 *   PUBSUB_EMULATOR_HOST=… FIRESTORE_EMULATOR_HOST=… npm exec -- node --conditions=source examples/src/sagas/food-orders.ts
 */
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { outbox, relay } from 'pubsub-guarantees/outbox';
import { firestoreOutbox } from 'pubsub-guarantees/outbox/firestore';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { sagas } from 'pubsub-guarantees/sagas';
import { firestoreSagas } from 'pubsub-guarantees/sagas/firestore';
import { localProject } from '../local-stack.ts';
import { type FoodOrder, foodOrder } from './food-order.ts';
import { startParticipants } from './processes.ts';
import { createTopics, ORCHESTRATOR, sagaTopic } from './topology.ts';

const projectId = await localProject('PUBSUB_EMULATOR_HOST', 'FIRESTORE_EMULATOR_HOST');
const pubsub = new PubSub({ projectId });
const firestore = new Firestore({ projectId });
const publisher = pubsubPublisher(pubsub);
const topic = sagaTopic(projectId);
await createTopics(pubsub);
const python = process.env['FOOD_COURIERS'];
const script = fileURLToPath(new URL('../../python/couriers.py', import.meta.url));
const participants = await startParticipants({
  env: process.env,
  ...(python !== undefined && { commands: { couriers: [python, script] } }),
});

const run = randomUUID().slice(0, 8);
const orders: readonly FoodOrder[] = [
  { id: `rice-${run}`, total: 1_250, to: 'High Street', dish: 'rice' },
  { id: `far-${run}`, total: 990, to: 'far side', dish: 'rice' },
  { id: `stew-${run}`, total: 1_490, to: 'Mill Lane', dish: 'stew' },
  { id: `pasta-${run}`, total: 1_100, to: 'Mill Lane', dish: 'pasta' },
];

// The start: in the transaction that makes the order true.
const rows = firestoreOutbox(firestore);
const box = outbox(rows, { projectId });
for (const order of orders) {
  await firestore.runTransaction(async (transaction) => {
    const slot = await box.reserve(transaction, { id: order.id });
    transaction.create(firestore.collection('food-orders').doc(order.id), { ...order, state: 'PENDING' });
    slot.add(foodOrder.start(order.id, order, { topic }));
  });
}
await relay(rows, publisher).sweep({ signal: new AbortController().signal });

const operator = sagas(firestoreSagas(firestore), { consumer: ORCHESTRATOR, topic, publisher });
for (const { id } of orders) {
  let view = await operator.inspect(foodOrder.name, id);
  while (view?.isEnded !== true) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    view = await operator.inspect(foodOrder.name, id);
  }
  const steps = view.steps.map(({ name, status }) => `${name} ${status}`).join(', ');
  const notice = await firestore.collection('food-notices').doc(id).get();
  const { state } = (await firestore.collection('food-payments').doc(id).get()).data() ?? {};
  console.log(`${id.split('-')[0]}: ${view.state}${view.reason === undefined ? '' : ` (${view.reason})`}`);
  console.log(`  ${steps}; payment ${state}; ${notice.exists ? `told: ${notice.get('text')}` : 'no notice'}`);
}

await participants.close();
await publisher.close();
await pubsub.close();
await firestore.terminate();
