/**
 * Two processes that publish through an outbox and two that consume in order, killed again and again while they are at work,
 * and the result: the consumers' lines, what is committed, and the final state of the streams.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { startFirestore, startPubsub, systemClock } from 'pubsub-guarantees-emulator';
import { silent } from '../../../shared/src/log.ts';
import { firestoreOutbox } from '../../../shared/src/outbox/firestore.ts';
import { pendingOf } from '../outbox/pending-of.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import type { PublishingTask } from '../outbox/pubsub-worker.ts';
import { pubsubPublisher } from '../../../shared/src/publish/pubsub.ts';
import { end, heard } from '../servers/child-processes.ts';
import { fastClock } from '../servers/fast-clock.ts';
import { firestoreStreams } from '../../../shared/src/order/firestore.ts';
import { type OrderedDelivery, orderedDelivery } from '../../../shared/src/order/in-order.ts';
import type { StreamDetails, StreamName } from '../../../shared/src/order/admin.ts';
import { CONSUMER, type ConsumingLine, type ConsumingTask } from './consuming-task.ts';

export type KillReport = Readonly<{
  lines: readonly ConsumingLine[];
  killed: Readonly<Record<Role, number>>;
  /** The texts of the orders that are committed, by key. */
  committed: ReadonlyMap<string, readonly string[]>;
  streams: ReadonlyMap<string, StreamDetails | undefined>;
  /** Rows that no publisher had published when the last one was gone. */
  leftBehind: number;
}>;

type Role = 'publisher' | 'consumer';

const ROLES: readonly Role[] = ['publisher', 'consumer'];
const MODULES: Readonly<Record<Role, URL>> = {
  publisher: new URL('../outbox/pubsub-worker.ts', import.meta.url),
  consumer: new URL('./pubsub-worker.ts', import.meta.url),
};
const WORKERS_OF_A_ROLE = 2;
const SUBSCRIPTION = 'orders';
/** As the client names it, which is the source of its messages. */
const SOURCE = `projects/demo-project/subscriptions/${SUBSCRIPTION}`;
const KEYS = 8;
/** The client asks for 10 s to acknowledge, which are 2.5 s here, a little more than the lease. */
const SPEED = 4;
/** The most between two orders of one publisher, so that consumers keep up on two cores. */
const PUBLISHER_PAUSE_MS = 40;
/** So many orders are committed between two kills, however slow the machine is; within this time. */
const ORDERS_PER_KILL = 4;
const PUBLISH_MS = 60_000;
const DRAIN_MS = 120_000;
/** A consumer that has begun no long run by then is killed anyway. */
const RUN_MS = 60_000;

/** Loopback alone; every process that was started is ended. */
export async function killWorkers(kills: number): Promise<KillReport> {
  const directory = await mkdtemp(join(tmpdir(), 'order-kills-'));
  const file = join(directory, 'lines');
  const clock = systemClock();
  const [firestoreServer, pubsubServer] = await Promise.all([
    startFirestore({ clock }),
    startPubsub({ clock: fastClock(clock, SPEED) }),
  ]);
  const servers = { firestore: firestoreServer.address, pubsub: pubsubServer.address };
  const [host = '', port] = servers.firestore.split(':');
  const firestore = new Firestore({ projectId: 'demo-project', host, port: Number(port), ssl: false });
  const pubsub = new PubSub({ projectId: 'demo-project', apiEndpoint: servers.pubsub });
  const publisher = pubsubPublisher(pubsub);
  const children = new Set<ChildProcess>();
  try {
    const [topic] = await pubsub.createTopic('orders');
    await topic.createSubscription(SUBSCRIPTION, { ackDeadlineSeconds: 10 });
    const start = starting(servers, file, join(directory, 'compiled'), children);
    const killed = await killing(kills, firestore, start);
    const last = firestoreOutbox(firestore);
    const rows = await pendingOf(last);
    const relayed = relay(last, publisher, { log: silent });
    const inspector = orderedDelivery(firestoreStreams(firestore));
    const committed = await committedOrders(firestore);
    const { signal } = new AbortController();
    const until = performance.now() + DRAIN_MS;
    for (;;) {
      await relayed.sweep({ signal });
      const { outstanding, backlog } = pubsubServer.stats();
      if (outstanding + backlog === 0 && (await isDrained(inspector, committed))) break;
      if (performance.now() > until) break;
      await pause(200);
    }
    const streams = new Map<string, StreamDetails | undefined>();
    for (const key of committed.keys()) streams.set(key, await inspector.inspect(refOf(key)));
    const lines = (await readFile(file, 'utf8')).trim().split('\n');
    return {
      lines: lines.map((line) => JSON.parse(line) as ConsumingLine),
      killed,
      committed,
      streams,
      leftBehind: rows.length,
    };
  } finally {
    await Promise.all([...children].map(end));
    await publisher.close();
    await pubsub.close();
    await firestore.terminate();
    await Promise.all([firestoreServer.close(), pubsubServer.close()]);
    await rm(directory, { recursive: true, force: true });
  }
}

/** Ends the publishers at last, once they have done something, and leaves the consumers at work. */
async function killing(
  kills: number,
  firestore: Firestore,
  start: (role: Role) => Promise<ChildProcess>,
): Promise<Readonly<Record<Role, number>>> {
  const workers = { publisher: [], consumer: [] } as Record<Role, Promise<ChildProcess>[]>;
  const killed = { publisher: 0, consumer: 0 };
  const worked = async (least: number): Promise<void> => {
    const until = performance.now() + PUBLISH_MS;
    while (performance.now() < until) {
      const count = await firestore.collection('orders').count().get();
      if (count.data().count >= least) return;
      await pause(50);
    }
  };
  for (const role of ROLES) {
    workers[role] = Array.from({ length: WORKERS_OF_A_ROLE }, () => start(role));
  }
  // Both in turn, so that few kills are of both.
  const first = Math.random() < 0.5 ? 0 : 1;
  for (let kill = 0; kill < kills; kill += 1) {
    const role = (kill + first) % 2 === 0 ? 'publisher' : 'consumer';
    const victim = await workers[role].shift();
    // Its successor is already starting, so that two of each are at work until the last kills.
    if (kill + ROLES.length < kills) workers[role].push(start(role));
    await worked(ORDERS_PER_KILL * (kill + 1));
    await pause(Math.random() * 800);
    if (victim === undefined) continue;
    // Every second consumer in a run, so that at least one kill leaves a lease behind.
    if (role === 'consumer' && killed.consumer % 2 === 0) {
      victim.send('the next run is the last');
      await Promise.race([heard(victim), pause(RUN_MS)]);
    }
    await end(victim);
    killed[role] += 1;
  }
  await Promise.all(workers.consumer);
  await worked(5 * KEYS);
  await Promise.all(workers.publisher.map(async (worker) => end(await worker)));
  return killed;
}

function starting(
  servers: Pick<ConsumingTask, 'firestore' | 'pubsub'>,
  file: string,
  compiled: string,
  children: Set<ChildProcess>,
): (role: Role) => Promise<ChildProcess> {
  let made = 0;
  return async (role) => {
    const name = `${role}-${(made += 1)}`;
    const task: PublishingTask | ConsumingTask =
      role === 'publisher'
        ? { name, ...servers, keys: KEYS, pauseMs: PUBLISHER_PAUSE_MS }
        : { name, ...servers, subscription: SUBSCRIPTION, file };
    const child = fork(MODULES[role], [JSON.stringify(task)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, NODE_COMPILE_CACHE: compiled },
    });
    children.add(child);
    // A publisher has committed an order, a consumer listens.
    await heard(child);
    return child;
  };
}

async function committedOrders(firestore: Firestore): Promise<ReadonlyMap<string, readonly string[]>> {
  const { docs } = await firestore.collection('orders').get();
  const byKey = Map.groupBy(docs, (doc) => String(doc.get('sequenceKey')));
  return new Map([...byKey].map(([key, ofKey]) => [key, ofKey.map(({ id }) => id)]));
}

const refOf = (key: string): StreamName => ({ consumer: CONSUMER, source: SOURCE, key });

async function isDrained(
  { inspect }: OrderedDelivery,
  committed: ReadonlyMap<string, readonly string[]>,
): Promise<boolean> {
  for (const [key, texts] of committed) {
    const stream = await inspect(refOf(key));
    if (stream?.status !== 'idle' || stream.last < texts.length) return false;
  }
  return true;
}
