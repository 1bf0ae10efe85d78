import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { Client, credentials, type MethodDefinition, type ServiceError } from '@grpc/grpc-js';
import { systemClock } from '../clock.ts';
import { startPubsub } from '../pubsub/index.ts';
import { pubsubServiceDefinitions } from '../pubsub/protos.ts';
import { createFaults, type Faults } from './index.ts';

const TOPICS = ['a', 'b', 'c'].map((id) => `projects/p/topics/topic-${id}`);
const CLIENTS = 4;
const CALLS = 30;

const planOf = (seed: number): object => ({
  seed,
  rules: [
    {
      service: 'pubsub',
      method: 'Publish',
      resource: '*-a',
      share: 0.3,
      times: 5,
      action: { type: 'lose-reply' },
    },
    { service: 'pubsub', method: 'Publish', share: 0.2, action: { type: 'fail' } },
    { service: 'pubsub', method: 'Publish', share: 0.1, action: { type: 'delay', ms: 3 } },
    { service: 'pubsub', method: 'Publish', resource: '*-b', nth: [7, 70], action: { type: 'duplicate' } },
    { service: 'pubsub', method: 'Pull', share: 0.2, action: { type: 'fail', code: 'ABORTED' } },
    { service: 'pubsub', method: 'deliver', share: 0.2, action: { type: 'duplicate' } },
  ],
});

/** Calls of several clients at once, each on a connection of its own: which comes first is up to the machine. */
async function talk(address: string, run: number): Promise<void> {
  const { publisher } = pubsubServiceDefinitions();
  const { path, requestSerialize, responseDeserialize } = publisher['Publish']!;
  const clients = Array.from(
    { length: CLIENTS },
    () => new Client(address, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 }),
  );
  await Promise.all(
    clients.map(async (client, index) => {
      for (let call = 0; call < CALLS; call += 1) {
        const topic = TOPICS[(call + index * run) % TOPICS.length];
        await new Promise<void>((resolve) => {
          const done = (_error: ServiceError | null): void => resolve();
          const request = { topic, messages: [{ data: Buffer.from('x') }] };
          client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, done);
        });
        if ((call + index + run) % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    }),
  );
  for (const client of clients) client.close();
}

/** What was decided, resource by resource: between resources there is no order. */
const decisions = (faults: Faults): readonly string[] =>
  faults
    .log()
    .map(({ method, resource, n, rule, action }) =>
      [method, resource, String(n).padStart(4), rule, action].join(' '),
    )
    .toSorted();

/** A server of its own, with the topics and a subscription of each. */
async function decided(plan: object, made: (address: string) => Promise<void>): Promise<readonly string[]> {
  const faults = createFaults();
  const server = await startPubsub({ clock: systemClock(), faults });
  const { publisher, subscriber } = pubsubServiceDefinitions();
  const client = new Client(server.address, credentials.createInsecure());
  const create = (definition: MethodDefinition<object, object> | undefined, request: object) =>
    new Promise<void>((resolve, reject) => {
      assert.ok(definition);
      const { path, requestSerialize, responseDeserialize } = definition;
      const done = (error: ServiceError | null): void => (error === null ? resolve() : reject(error));
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, done);
    });
  for (const topic of TOPICS) {
    await create(publisher['CreateTopic'], { name: topic });
    await create(subscriber['CreateSubscription'], {
      name: topic.replace('/topics/', '/subscriptions/'),
      topic,
    });
  }
  client.close();
  faults.set(plan);
  await made(server.address);
  await server.close();
  return decisions(faults);
}

/**
 * A process with Google's client: for each address that it is sent it publishes to every topic, in an order of its own,
 * and pulls when the test says that every process has published. Both as often as the client tries again.
 */
const PROCESS = `
  import { PubSub, v1 } from '@google-cloud/pubsub';
  import { credentials } from '@grpc/grpc-js';
  const backoffSettings = {
    initialRetryDelayMillis: 1, retryDelayMultiplier: 1, maxRetryDelayMillis: 2, totalTimeoutMillis: 120_000,
    initialRpcTimeoutMillis: 60_000, rpcTimeoutMultiplier: 1, maxRpcTimeoutMillis: 60_000,
  };
  const retry = { retryCodes: [10, 14], backoffSettings };
  const topics = ${JSON.stringify(TOPICS)};
  const tasks = {
    async publish({ address, seat, run }) {
      const pubsub = new PubSub({ projectId: 'p', apiEndpoint: address, emulatorMode: true });
      const calls = Array.from({ length: ${CALLS} }, (_, index) => topics[(index + seat * run) % topics.length]);
      const options = { batching: { maxMessages: 1 }, gaxOpts: { retry } };
      const open = Object.fromEntries(topics.map((name) => [name, pubsub.topic(name, options)]));
      await Promise.all(calls.map((name) => open[name].publishMessage({ data: Buffer.from('x') })));
      await pubsub.close();
    },
    async pull({ address }) {
      const [host, port] = address.split(':');
      const sslCreds = credentials.createInsecure();
      const subscriber = new v1.SubscriberClient({ servicePath: host, port: Number(port), sslCreds, projectId: 'p' });
      const each = topics.map((name) => name.replace('/topics/', '/subscriptions/'));
      for (let turn = 0; turn < 10; turn += 1) {
        const request = { maxMessages: 1_000, returnImmediately: true };
        await Promise.all(each.map((subscription) => subscriber.pull({ ...request, subscription }, { retry })));
      }
      await subscriber.close();
    },
  };
  process.on('message', (message) => {
    tasks[message.task](message).then(() => process.send('done'), (error) => process.send(String(error.stack)));
  });
  process.on('disconnect', () => process.exit(0));
  process.send('ready');`;

async function start(t: TestContext): Promise<ChildProcess> {
  const started = spawn(process.execPath, ['--input-type=module', '-e', PROCESS], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, METADATA_SERVER_DETECTION: 'none' },
  });
  t.after(() => started.kill('SIGKILL'));
  assert.deepEqual(await once(started, 'message'), ['ready', undefined]);
  return started;
}

async function instruct(process: ChildProcess, message: object): Promise<void> {
  const answered = once(process, 'message');
  process.send(message);
  const [answer] = (await answered) as [string];
  assert.equal(answer, 'done');
}

test('the same seed decides the same, over ten runs of several clients at once', async () => {
  const run = (seed: number, n: number) => decided(planOf(seed), (address) => talk(address, n));
  const first = await run(7, 0);
  assert.ok(first.length > 20 && first.length < CLIENTS * CALLS);
  for (let n = 1; n < 10; n += 1) assert.deepEqual(await run(7, n), first, `run ${n}`);
  assert.notDeepEqual(await run(8, 0), first, 'another seed decides otherwise');
});

test('and over ten runs of two processes with Google’s client, which tries again by itself', async (t) => {
  const processes = await Promise.all([start(t), start(t)]);
  const run = (seed: number, n: number) =>
    decided(planOf(seed), async (address) => {
      for (const task of ['publish', 'pull']) {
        await Promise.all(processes.map((each, seat) => instruct(each, { task, address, seat, run: n })));
      }
    });
  const first = await run(7, 0);
  for (const method of ['Publish', 'Pull', 'deliver']) {
    assert.ok(
      first.filter((line) => line.startsWith(`${method} `)).length > 3,
      `${method} was hit: ${first.join()}`,
    );
  }
  for (let n = 1; n < 10; n += 1) assert.deepEqual(await run(7, n), first, `run ${n}`);
  assert.notDeepEqual(await run(8, 0), first, 'another seed decides otherwise');
});
