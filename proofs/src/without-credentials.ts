/**
 * A process without application default credentials that calls one of the adapters, reports the result, and ends by
 * itself a moment later: by then an unhandled rejection would have ended it. Started by credentials.test.ts.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { CloudTasksClient } from '@google-cloud/tasks';
import { firestoreClaims, firestoreInbox } from '../../shared/src/dedup/firestore.ts';
import { cloudTasksQueue } from '../../shared/src/tasks/cloud-tasks.ts';
import {
  firestoreCounters,
  firestoreCounterStart,
  firestoreStreams,
} from '../../shared/src/order/firestore.ts';
import { firestoreOutbox } from '../../shared/src/outbox/firestore.ts';
import { ack } from '../../shared/src/outcome.ts';
import { firestorePayloads } from '../../shared/src/payload/firestore.ts';
import { pubsubPublisher } from '../../shared/src/publish/pubsub.ts';
import { receive, subscriptionWindows } from '../../shared/src/receive/pubsub.ts';
import { firestoreLedger } from '../../shared/src/schedules/firestore.ts';

const projectId = 'test-project';
// Nothing listens there, and no test traffic leaves the machine; for a server that is no emulator the client needs
// credentials.
const NOWHERE = { host: '127.0.0.1', port: 9 };
const firestore = new Firestore({ projectId, host: `${NOWHERE.host}:${NOWHERE.port}` });
const pubsub = new PubSub({ projectId, apiEndpoint: `${NOWHERE.host}:${NOWHERE.port}`, emulatorMode: false });
const tasks = new CloudTasksClient({ projectId, apiEndpoint: NOWHERE.host, port: NOWHERE.port });
const request = {
  key: 'k'.repeat(43),
  owner: 'o',
  fingerprint: 'f'.repeat(43),
  messageId: '1',
  leaseMs: 5_000,
  retentionMs: 50_000,
  mayTakeOver: true,
};
const publisher = pubsubPublisher(pubsub, { publishTimeout: '60s' });
const publish = (): Promise<string> =>
  publisher.publish({ topic: 'topic-1', data: Buffer.from('x'), attributes: {} });
const queue = cloudTasksQueue(tasks, {
  queue: 'projects/p/locations/l/queues/q',
  target: { appEngine: {} },
  retryTimeout: '0s',
  callTimeout: '60s',
});
const ref = { consumer: 'c', source: 's', key: 'k' };

async function received(): Promise<never> {
  const errors: string[] = [];
  const log = {
    info() {},
    warn() {},
    error: (_: string, fields?: object) => void errors.push(JSON.stringify(fields)),
  };
  const receiver = receive(pubsub.subscription('sub-1'), async () => ack(), { consumer: 'c', log });
  for (let turn = 0; turn < 12_000 && errors.length === 0; turn += 1) await pause(10);
  await receiver.close();
  throw new Error(errors[0]);
}

const CALLS: Readonly<Record<string, () => Promise<unknown>>> = {
  publish,
  claim: () => firestoreClaims(firestore, { callTimeout: '60s' }).claim(request),
  inbox: () => firestoreInbox(firestore).claim(request),
  'inbox rows': () => firestoreInbox(firestore).outbox.pending(0, 0, undefined, 10),
  task: () => queue.create({ name: 'n', scheduleTimeMs: 0, body: Buffer.from('x') }),
  ledger: () => firestoreLedger(firestore, { callTimeout: '60s' }).read('id'),
  payloads: () => firestorePayloads(firestore).put('owner', Buffer.from('x'), 0),
  outbox: () => firestoreOutbox(firestore).readStream({ key: 'k', epoch: 'e' }),
  order: () => firestoreStreams(firestore).read(ref),
  counters: () => firestoreCounters(firestore).take('k', { id: 'i', count: 1, epoch: 'e' }),
  'counter start': () => firestoreCounterStart(firestore).read('k'),
  windows: async () => {
    const windows = await subscriptionWindows(pubsub, 'sub-1');
    throw new Error(`resolved with ${JSON.stringify(windows)}`);
  },
  receive: received,
};

const [name = '', file] = process.argv.slice(2);
const call = CALLS[name];
if (call === undefined) throw new Error(`${name}; accepted: ${Object.keys(CALLS).join(', ')}`);
const tell = async (): Promise<void> => {
  const began = performance.now();
  const outcome = await call().then(
    () => ({ name: 'resolved' }),
    (error: Error & { code?: string }) => ({ name: error.name, code: error.code, message: error.message }),
  );
  process.send?.({ ...outcome, milliseconds: performance.now() - began });
};
await tell();
await pause(300);
if (file !== undefined) {
  process.env['GOOGLE_APPLICATION_CREDENTIALS'] = file;
  await tell();
  await pause(300);
  process.exit(0);
}
await Promise.all([publisher.close(), pubsub.close(), tasks.close(), firestore.terminate()]);
process.send?.({ name: 'closed' });
process.exit(0);
