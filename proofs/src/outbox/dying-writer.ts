/**
 * A process that commits messages and dies by SIGKILL before it publishes one of them. Started by trigger.test.ts; it ends
 * with its parent.
 */
import { Firestore } from '@google-cloud/firestore';
import { firestoreInbox } from '../../../shared/src/dedup/firestore-inbox.ts';
import { inbox } from '../../../shared/src/dedup/inbox.ts';
import { contextFor } from '../../../shared/src/context.ts';
import { systemClock } from '../../../shared/src/clock.ts';
import { silent } from '../../../shared/src/log.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { firestoreOutbox } from '../../../shared/src/outbox/firestore.ts';
import { outbox } from '../../../shared/src/outbox/outbox.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import { message } from './world.ts';

export type DyingTask = Readonly<{ firestore: string; rows: string; streams: string }>;

const task = JSON.parse(process.argv[2] ?? '') as DyingTask;
process.once('disconnect', () => process.exit());

const die = (): never => {
  process.kill(process.pid, 'SIGKILL');
  throw new Error('it goes on after SIGKILL');
};
const [host = '', port] = task.firestore.split(':');
const firestore = new Firestore({ projectId: 'test-project', host, port: Number(port), ssl: false });
const store = firestoreOutbox(firestore, { rows: task.rows, streams: task.streams });
// It would publish what it has committed, and so holds the leases of its rows.
const publisher = { publish: async () => die() };
const box = outbox(store, { relay: relay(store, publisher, { log: silent }) });

await firestore.runTransaction(async (transaction) => {
  const ordered = await box.reserve(transaction, { sequenceKey: 'order-17' });
  const loose = await box.reserve(transaction, {});
  ordered.add(message('1'), message('2'), message('3'));
  loose.add(message('loose'));
});
const clock = systemClock();
const handle = inbox(firestoreInbox(firestore, { outbox: store }), { publisher })(async () =>
  ack('handled', [message('reply 1'), message('reply 2')]),
);
const context = contextFor(clock, {
  consumer: 'writer',
  deadline: clock.monotonic() + 60_000,
  signal: new AbortController().signal,
  log: silent,
});
const delivered = { id: 'm1', data: Buffer.from('x'), attributes: {}, publishTime: new Date() };
await handle(delivered, { ...context, source: 'projects/p/subscriptions/s' });
