import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { PubSub, type Subscription } from '@google-cloud/pubsub';
import { ack, compose, type Context, silent, systemClock } from 'pubsub-guarantees';
import { delay } from 'pubsub-guarantees/delay';
import { cloudTasksClient, cloudTasksQueue } from 'pubsub-guarantees/tasks/cloud-tasks';
import { startCloudTasks, startPubsub, until } from 'pubsub-guarantees-emulator';

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url));
const LOCATION = 'projects/demo-project/locations/us-central1';
const QUEUE = `${LOCATION}/queues/delay-queue`;
const TOPIC = 'projects/demo-project/topics/out';

const environment = {
  GOOGLE_CLOUD_PROJECT: 'demo-project',
  ALLOWED_TOPICS: 'out',
  DEAD_LETTER_TOPIC: 'dead-letters',
  DELAY_QUEUE: 'delay-queue',
  TASKS_LOCATION: 'us-central1',
  GAE_ENV: 'standard',
  PORT: '0',
  METADATA_SERVER_DETECTION: 'none',
  CLOUD_TASKS_EMULATOR_HOST: '127.0.0.1:9',
  PUBSUB_EMULATOR_HOST: '127.0.0.1:9',
};

type Process = { child: ChildProcess; ended: Promise<number | null>; text: { out: string; err: string } };

function run(t: TestContext, change: Record<string, string> = {}): Process {
  const { PATH = '', NODE_OPTIONS = '' } = process.env;
  const env = { PATH, NODE_OPTIONS, ...environment, ...change };
  const child = spawn(process.execPath, ['--conditions=source', MAIN], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const text = { out: '', err: '' };
  child.stdout.on('data', (data: Buffer) => (text.out += data.toString()));
  child.stderr.on('data', (data: Buffer) => (text.err += data.toString()));
  t.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return { child, ended, text };
}

const portOf = ({ text }: Process): Promise<number> =>
  until(() => {
    const port = /"message":"listening","port":(\d+)/.exec(text.out)?.[1];
    return port === undefined ? undefined : Number(port);
  });

test('a variable that is wrong ends it with 1 and one line that names it', async (t) => {
  const started = run(t, { ALLOWED_TOPICS: '' });
  assert.equal(await started.ended, 1);
  assert.match(started.text.err, /^cannot start: ALLOWED_TOPICS is not set; accepted: [^\n]+\n$/);
});

test('a port that is taken ends it with 1 and one line that names it', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => other.close());
  const { port } = other.address() as { port: number };
  const started = run(t, { PORT: String(port) });
  assert.equal(await started.ended, 1);
  assert.match(started.text.err, new RegExp(`^cannot start: cannot listen on port ${port}: [^\\n]+\\n$`));
});

test('it answers its health page, refuses strangers, and ends with 0 on SIGTERM', async (t) => {
  const started = run(t);
  const base = `http://127.0.0.1:${await portOf(started)}`;
  assert.equal((await fetch(`${base}/healthz`)).status, 200);
  const headers = { 'X-CloudTasks-QueueName': 'delay-queue' };
  assert.equal((await fetch(`${base}/republish`, { method: 'POST', body: 'x', headers })).status, 403);
  started.child.kill('SIGTERM');
  assert.equal(await started.ended, 0);
  assert.equal(started.text.err, '');
});

test('B40: off App Engine the header of App Engine is no proof', async (t) => {
  const started = run(t, {
    GAE_ENV: '',
    ALLOW_UNAUTH: '1',
    OIDC_AUDIENCE: 'https://republisher.example',
    OIDC_SERVICE_ACCOUNT: 'caller@p.iam.gserviceaccount.com',
  });
  const base = `http://127.0.0.1:${await portOf(started)}`;
  const headers = { 'X-AppEngine-QueueName': 'delay-queue' };
  assert.equal((await fetch(`${base}/republish`, { method: 'POST', body: 'x', headers })).status, 401);
  started.child.kill('SIGTERM');
  assert.equal(await started.ended, 0);
});

test('a delayed message goes through queue and process to its topic, an unreadable task to the dead letters', async (t) => {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const clock = systemClock();
  let url = '';
  const tasks = await startCloudTasks({ clock, appEngine: () => url });
  const broker = await startPubsub({ clock });
  const client = cloudTasksClient({ projectId: 'demo-project', emulatorHost: tasks.address });
  const pubsub = new PubSub({ projectId: 'demo-project', apiEndpoint: broker.address });
  const subscriptions: Subscription[] = [];
  t.after(async () => {
    // First: a client whose server has gone looks for it for a long time.
    await Promise.all(subscriptions.map((subscription) => subscription.close()));
    await client.close();
    await pubsub.close();
    await tasks.close();
    await broker.close();
  });
  await client.createQueue({ parent: LOCATION, queue: { name: QUEUE } });
  const received: { data: string; attributes: Record<string, string>; atMs: number }[] = [];
  for (const name of ['out', 'dead-letters']) {
    await pubsub.createTopic(name);
    const [subscription] = await pubsub.topic(name).createSubscription(`${name}-sub`);
    subscription.on('message', (message) => {
      received.push({ data: message.data.toString(), attributes: message.attributes, atMs: Date.now() });
      message.ack();
    });
    subscriptions.push(subscription);
  }
  const started = run(t, {
    CLOUD_TASKS_EMULATOR_HOST: tasks.address,
    PUBSUB_EMULATOR_HOST: broker.address,
  });
  url = `http://127.0.0.1:${await portOf(started)}`;

  const queue = cloudTasksQueue(client, { queue: QUEUE, target: { appEngine: {} } });
  const stage = compose(async () => ack(), [delay(queue, { clock, topic: TOPIC })]);
  const context = { consumer: 'delay', source: 'in', log: silent } as unknown as Context;
  const publishTime = new Date();
  const message = { id: '7', data: Buffer.from('hello'), attributes: { delay: '1' }, publishTime };
  assert.deepEqual(await stage(message, context), ack('scheduled'));
  const arrived = await until(() => received[0]);
  assert.equal(arrived.data, 'hello');
  assert.equal(arrived.attributes['dedupId'], 'in/7');
  assert.ok(arrived.atMs >= publishTime.getTime() + 1_000, 'not early');

  const headers = { 'X-AppEngine-QueueName': 'delay-queue' };
  assert.equal((await fetch(`${url}/republish`, { method: 'POST', body: '{', headers })).status, 200);
  const dead = await until(() => received[1]);
  assert.equal(dead.data, '{');
  assert.equal(dead.attributes['deadLetterReason'], 'UNREADABLE_TASK');
  started.child.kill('SIGTERM');
  assert.equal(await started.ended, 0);
});
