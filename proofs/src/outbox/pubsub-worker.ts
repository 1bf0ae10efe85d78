/**
 * A process that commits orders with their messages, publishes by the fast path, and relays what others left behind, until
 * it is killed. Started by kills.test.ts here and in order/; it ends with its parent.
 */
import { randomUUID } from 'node:crypto';
import { flushCompileCache } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { silent } from '../../../shared/src/log.ts';
import { pubsubPublisher } from '../../../shared/src/publish/pubsub.ts';
import { firestoreOutbox } from '../../../shared/src/outbox/firestore.ts';
import { outbox } from '../../../shared/src/outbox/outbox.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';

export type PublishingTask = Readonly<{
  name: string;
  firestore: string;
  pubsub: string;
  keys: number;
  /** At most, between two orders: what reads them shares the machine. Default: none. */
  pauseMs?: number;
}>;

const task = JSON.parse(process.argv[2] ?? '') as PublishingTask;
process.once('disconnect', () => process.exit());

const [host = '', port] = task.firestore.split(':');
const firestore = new Firestore({ projectId: 'demo-project', host, port: Number(port), ssl: false });
const pubsub = new PubSub({ projectId: 'demo-project', apiEndpoint: task.pubsub });
const store = firestoreOutbox(firestore);
const relayed = relay(store, pubsubPublisher(pubsub, { publishTimeout: '2s' }), {
  log: silent,
  lease: '3s',
  publishTimeout: '2s',
  interval: '1s',
});
const box = outbox(store, { relay: relayed });
void relayed.run(new AbortController().signal);
// Writes the compile cache for later processes: a killed process would not write it.
flushCompileCache();

for (let count = 0; ; count += 1) {
  const order = `${task.name}-${count}-${randomUUID()}`;
  const sequenceKey = `key-${Math.floor(Math.random() * task.keys)}`;
  try {
    const added = await firestore.runTransaction(async (transaction) => {
      const slot = await box.reserve(transaction, { sequenceKey });
      if (!slot.isRepeat) transaction.create(firestore.doc(`orders/${order}`), { sequenceKey });
      return slot.add({
        topic: 'orders',
        data: Buffer.from(order),
        attributes: {},
        orderingKey: sequenceKey,
      });
    });
    if (count === 0) process.send?.('begun');
    await added.afterCommit();
  } catch {
    // Contention, or a server that is going: the next order is another one.
  }
  if (task.pauseMs !== undefined) await pause(Math.random() * task.pauseMs);
}
