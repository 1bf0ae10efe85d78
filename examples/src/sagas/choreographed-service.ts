/**
 * The food order without an orchestrator: three services that react to each other's events. Run with the name of one of them.
 * Each event's work, the record of it, what it publishes and its trace are one commit.
 *
 * Nothing waits here and nothing asks again: what a subscription does not deliver again stays where it is, and
 * `sagaTraces(…).open(…)` is what finds it.
 */
import { Firestore, type Transaction } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { ack, outgoing } from 'pubsub-guarantees';
import { inbox } from 'pubsub-guarantees/dedup';
import { firestoreInbox } from 'pubsub-guarantees/dedup/firestore';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { receive } from 'pubsub-guarantees/receive/pubsub';
import { correlated, type CorrelatedHandler } from 'pubsub-guarantees/sagas';
import { firestoreStepRecords, firestoreTraces } from 'pubsub-guarantees/sagas/firestore';
import { type EventName, eventTopic, LISTENS, type ServiceName } from './choreography.ts';
import type { FoodOrder } from './food-order.ts';

process.env['METADATA_SERVER_DETECTION'] ??= 'none';
const projectId = process.env['GOOGLE_CLOUD_PROJECT'] ?? 'demo-project';
const pubsub = new PubSub({ projectId });
const firestore = new Firestore({ projectId });
const publisher = pubsubPublisher(pubsub);

type On = Readonly<Partial<Record<EventName, CorrelatedHandler<Transaction>>>>;

const orderIn = (data: Buffer): FoodOrder => JSON.parse(data.toString()) as FoodOrder;
const publish = (event: EventName, data: Buffer) =>
  ack('handled', [outgoing(eventTopic(event), { data: data.toString() })]);
const record = (id: string) => firestore.collection('food-choreographed').doc(id);

const SERVICES: Readonly<Record<ServiceName, On>> = {
  payments: {
    async placed({ data }, { transaction, correlation }) {
      const part = await correlation.step('payment');
      if (part.state !== 'new') return ack();
      const { id, total } = orderIn(data);
      transaction.set(record(id), { payment: 'reserved', total }, { merge: true });
      part.done();
      return publish('paid', data);
    },
    async confirmed({ data }, { transaction, correlation }) {
      transaction.set(record(orderIn(data).id), { payment: 'collected' }, { merge: true });
      correlation.end('completed');
      return ack();
    },
    async failed({ data }, { transaction, correlation }) {
      const part = await correlation.step('payment');
      if (part.state === 'done') {
        transaction.set(record(orderIn(data).id), { payment: 'released' }, { merge: true });
        part.undone();
      } else if (part.state === 'new') part.cancelled();
      correlation.end('compensated');
      return ack();
    },
  },
  couriers: {
    async paid({ data }, { transaction, correlation }) {
      const part = await correlation.step('courier');
      if (part.state !== 'new') return ack();
      const { id, to } = orderIn(data);
      if (to === 'far side') return publish('failed', data);
      transaction.set(record(id), { courier: 'Ada' }, { merge: true });
      part.done();
      return publish('found', data);
    },
    async refused({ data }, { transaction, correlation }) {
      const part = await correlation.step('courier');
      if (part.state === 'done') {
        transaction.set(record(orderIn(data).id), { courier: 'released' }, { merge: true });
        part.undone();
      } else if (part.state === 'new') part.cancelled();
      return publish('failed', data);
    },
  },
  kitchen: {
    async found({ data }, { transaction, correlation }) {
      const part = await correlation.step('kitchen');
      if (part.state !== 'new') return ack();
      const { id, dish } = orderIn(data);
      if (dish === 'soup') return publish('refused', data);
      transaction.set(record(id), { dish }, { merge: true });
      part.done();
      return publish('confirmed', data);
    },
  },
};

const name = (Object.keys(LISTENS) as ServiceName[]).find((known) => known === process.argv[2]);
if (name === undefined) throw new Error(`accepted: one of ${Object.keys(LISTENS).join(', ')}`);
const traced = correlated<Transaction>({
  traces: firestoreTraces(firestore),
  records: firestoreStepRecords(firestore),
});
for (const [event, subscription] of Object.entries(LISTENS[name])) {
  const handler = SERVICES[name][event as EventName];
  if (handler === undefined) throw new Error(`${name} does not know ${event}`);
  const once = inbox(firestoreInbox(firestore), { publisher, lease: '5s', projectId });
  receive(pubsub.subscription(subscription), once(traced(handler)), { consumer: `food-${name}` });
}
// Without the program that has started it, it ends.
process.once('disconnect', () => process.exit());
process.send?.('ready');
