/**
 * A rolling deployment of the function `saga`, as its platform starts it: for a while a process that knows version 1 of a
 * definition alone and one that knows versions 1 and 2 get each other's events.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { firestoreSagas } from 'pubsub-guarantees/sagas/firestore';
import { cloudTasksClient } from 'pubsub-guarantees/tasks/cloud-tasks';
import {
  freePort,
  startCloudTasks,
  startFirestore,
  startPubsub,
  systemClock,
} from 'pubsub-guarantees-emulator';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const framework = createRequire(import.meta.url).resolve('@google-cloud/functions-framework');
const LOCATION = 'projects/demo/locations/us-central1';
const QUEUE = `${LOCATION}/queues/later`;
const CONSUMER = 'order-sagas';
process.env['METADATA_SERVER_DETECTION'] ??= 'none';

/** Version 2 has a step more. */
const definitions = (list: string): string => `
  import { defineSaga } from ${JSON.stringify(import.meta.resolve('pubsub-guarantees/sagas'))};
  const asked = { do: ({ city }) => ({ city }), replyTimeout: '1h' };
  const hotel = { ...asked, topic: 'hotels', undo: () => ({}) };
  const flight = { ...asked, topic: 'flights', undo: () => ({}) };
  const letter = { ...asked, topic: 'letters' };
  const v1 = defineSaga('trip', { version: 1 }).compensable('hotel', hotel).retriable('letter', letter);
  const v2 = defineSaga('trip', { version: 2 }).compensable('hotel', hotel).compensable('flight', flight)
    .retriable('letter', letter);
  export default [${list}];
`;

async function startServers(t: TestContext) {
  const clock = systemClock();
  const [pubsub, firestore, tasks] = await Promise.all([
    startPubsub({ clock }),
    startFirestore({ clock }),
    startCloudTasks({ clock, appEngine: () => 'http://127.0.0.1:9' }),
  ]);
  const client = new PubSub({ projectId: 'demo', apiEndpoint: pubsub.address, emulatorMode: true });
  for (const topic of ['saga', 'hotels', 'flights', 'letters', 'dead-letters'])
    await client.createTopic(topic);
  await client.close();
  const queues = cloudTasksClient({ projectId: 'demo', emulatorHost: tasks.address });
  await queues.createQueue({ parent: LOCATION, queue: { name: QUEUE } });
  const [host = '', at] = firestore.address.split(':');
  const database = new Firestore({ projectId: 'demo', host, port: Number(at), ssl: false });
  const folder = await mkdtemp(join(tmpdir(), 'saga-rolling-'));
  t.after(async () => {
    await Promise.all([queues.close(), database.terminate(), rm(folder, { recursive: true })]);
    await Promise.all([pubsub.close(), firestore.close(), tasks.close()]);
  });
  const env = {
    GOOGLE_CLOUD_PROJECT: 'demo',
    SAGA_TOPIC: 'saga',
    DEAD_LETTER_TOPIC: 'dead-letters',
    DELAY_QUEUE: QUEUE,
    CONSUMER,
    // A busy machine must not take a claim for one that was left behind.
    DEDUP_LEASE: '300s',
    METADATA_SERVER_DETECTION: 'none',
    PUBSUB_EMULATOR_HOST: pubsub.address,
    FIRESTORE_EMULATOR_HOST: firestore.address,
    CLOUD_TASKS_EMULATOR_HOST: tasks.address,
  };
  const store = firestoreSagas(database, { collection: 'pubsub-guarantees-sagas', callTimeout: '60s' });
  return {
    env,
    folder,
    store,
    /** Messages that were rescheduled: no timer is delivered here, so nothing else makes a task. */
    rescheduled: async (): Promise<number> => {
      const [found] = await queues.listTasks({ parent: QUEUE });
      return found.length;
    },
    instance: async (id: string) => {
      const { instance } = await store.read({ consumer: CONSUMER, saga: 'trip', id });
      assert.ok(instance !== undefined, `${id} was not started`);
      const statuses = instance.plan.map(({ name }) => `${name} ${instance.steps[name]?.status ?? 'idle'}`);
      return { version: instance.version, state: instance.state, steps: statuses.join(', ') };
    },
  };
}

type Servers = Awaited<ReturnType<typeof startServers>>;
type Sent = Readonly<Record<string, string>>;

/** A process of the function with these definitions; answers how to deliver to it. */
async function startFunction(t: TestContext, { env, folder }: Servers, name: string, list: string) {
  const port = await freePort();
  const file = join(folder, `${name}.mjs`);
  await writeFile(file, definitions(list));
  const flags = ['--target=saga', `--source=${PACKAGE}`, `--port=${port}`, '--signature-type=http'];
  const program = ['--conditions=source', join(dirname(framework), 'main.js'), ...flags];
  const child = spawn(process.execPath, program, {
    env: { ...env, SAGA_MODULE: file },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text));
  t.after(async () => {
    if (child.exitCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  });
  const url = `http://127.0.0.1:${port}/`;
  const post = async (body: string): Promise<number> => {
    const headers = { 'content-type': 'application/json', connection: 'close' };
    const response = await fetch(url, { method: 'POST', body, headers });
    await response.arrayBuffer();
    return response.status;
  };
  /** As a subscription does: again until it is acknowledged. */
  const deliver = async (attributes: Sent, data = '{"city":"Ulm"}'): Promise<void> => {
    const id = attributes['dedupId'] ?? '';
    const publishTime = new Date().toISOString();
    const message = { messageId: id, publishTime, data: Buffer.from(data).toString('base64'), attributes };
    const body = JSON.stringify({ message, subscription: 'projects/demo/subscriptions/saga-sub' });
    for (;;) {
      assert.equal(child.exitCode, null, complaints);
      const status = await post(body).catch(() => 0);
      if (status === 204) return;
      await pause(50);
    }
  };
  const of = (id: string): Sent => ({ saga: 'trip', sagaId: id });
  return {
    start: (id: string) => deliver({ ...of(id), sagaAction: 'start', dedupId: `start ${id}` }),
    done: (id: string, step: string) =>
      deliver(
        {
          ...of(id),
          sagaAction: 'do',
          sagaStep: step,
          sagaAttempt: '1',
          sagaOutcome: 'done',
          dedupId: `${id} ${step} done`,
        },
        '',
      ),
  };
}

test('S15: versions 1 and 2 beside each other: instances of both end under their own plan, whichever process gets their events', async (t) => {
  const local = await startServers(t);
  const { instance, rescheduled, store } = local;
  const [before, after] = await Promise.all([
    startFunction(t, local, 'before', 'v1'),
    startFunction(t, local, 'after', 'v1, v2'),
  ]);
  // A start that names no version is one of the newest that its process knows.
  await before.start('one');
  await after.start('two');
  assert.deepEqual(await instance('one'), {
    version: 1,
    state: 'running',
    steps: 'hotel doing, letter idle',
  });
  const two = { version: 2, state: 'running', steps: 'hotel doing, flight idle, letter idle' };
  assert.deepEqual(await instance('two'), two);

  // The process of before does not know version 2: it writes nothing, and reschedules the event.
  await before.done('two', 'hotel');
  assert.deepEqual([await instance('two'), await rescheduled()], [two, 1]);
  await after.done('two', 'hotel');
  assert.deepEqual((await instance('two')).steps, 'hotel done, flight doing, letter idle');

  // An instance of version 1 goes on under its own plan, also in a process whose newest is version 2.
  await after.done('one', 'hotel');
  assert.deepEqual((await instance('one')).steps, 'hotel done, letter doing');
  await before.done('one', 'letter');
  assert.deepEqual(await instance('one'), {
    version: 1,
    state: 'completed',
    steps: 'hotel done, letter done',
  });

  await after.done('two', 'flight');
  await before.done('two', 'letter');
  assert.deepEqual(
    [(await instance('two')).state, await rescheduled()],
    ['running', 2],
    'its last event waits for a process that knows it',
  );
  await after.done('two', 'letter');
  assert.deepEqual(await instance('two'), {
    version: 2,
    state: 'completed',
    steps: 'hotel done, flight done, letter done',
  });

  // What an operator asks before version 1 is removed.
  const open = await store.list({ consumer: CONSUMER, version: 1, state: 'running', limit: 10 });
  assert.deepEqual(open.items, []);
});
