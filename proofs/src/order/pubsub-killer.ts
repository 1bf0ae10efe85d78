/**
 * A process that pulls a subscription in order, sweeps, and kills itself with SIGKILL when its handler gets the one
 * number that kills. It writes each start of a number to a file before it runs it. Started by killer.test.ts; it ends with
 * its parent.
 */
import { appendFileSync } from 'node:fs';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { systemClock } from '../../../shared/src/clock.ts';
import { compose, type Handler } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { receive } from '../../../shared/src/receive/pubsub.ts';
import { firestoreStreams } from '../../../shared/src/order/firestore.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import { CONSUMER, type KilledTask, KILLER, type StartedLine } from './killed-task.ts';

const task = JSON.parse(process.argv[2] ?? '') as KilledTask;
process.once('disconnect', () => process.exit());
process.env['METADATA_SERVER_DETECTION'] ??= 'none';

const clock = systemClock();
const [host = '', port] = task.firestore.split(':');
const firestore = new Firestore({ projectId: 'demo-project', host, port: Number(port), ssl: false });
const streams = orderedDelivery(firestoreStreams(firestore), {
  clock,
  lease: '2s',
  retry: { maxAttempts: task.maxAttempts },
});

const handler: Handler = async ({ attributes: { sequenceKey: key = '', sequence } }) => {
  const number = Number(sequence);
  appendFileSync(task.file, `${JSON.stringify({ key, number } satisfies StartedLine)}\n`);
  if (number === task.number && key.startsWith(KILLER)) process.kill(process.pid, 'SIGKILL');
  return ack();
};

const sweep = streams.sweep(compose(handler, []));
let isSweeping = false;
clock.after(task.sweepEveryMs, function again() {
  clock.after(task.sweepEveryMs, again);
  if (isSweeping) return;
  isSweeping = true;
  const { signal } = new AbortController();
  const deadline = clock.monotonic() + 10_000;
  void sweep({ consumer: CONSUMER, now: clock.now, deadline, signal, log: silent })
    .catch(() => undefined)
    .then(() => (isSweeping = false));
});

const client = new PubSub({ projectId: 'demo-project', apiEndpoint: task.pubsub });
receive(client.subscription(task.subscription), compose(handler, [streams.middleware]), {
  consumer: CONSUMER,
  handlerTimeout: '20s',
  log: silent,
});
