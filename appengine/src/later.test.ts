import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ack, compose, type Context, type Message, type Outcome, silent } from 'pubsub-guarantees';
import { deadLettering } from 'pubsub-guarantees/dead-letters';
import { delay, republish } from 'pubsub-guarantees/delay';
import { severalQueues } from 'pubsub-guarantees/tasks';
import { cloudTasksClient, cloudTasksQueue } from 'pubsub-guarantees/tasks/cloud-tasks';
import { memoryPublisher, virtualClock } from 'pubsub-guarantees/testing';
import { startCloudTasks, until } from 'pubsub-guarantees-emulator';
import { authentication } from './auth.ts';
import { startServer } from './server.ts';

const LOCATION = 'projects/demo-project/locations/us-central1';
const QUEUES = ['delay-queue', 'delay-queue-2', 'delay-queue-3'].map((id) => `${LOCATION}/queues/${id}`);
const TOPIC = 'projects/demo-project/topics/out';
const DAY_MS = 86_400_000;

/** The delay stage, a local Cloud Tasks server, and the republisher behind real sockets, all on one virtual clock. */
async function later(t: TestContext, queues = QUEUES.slice(0, 1)) {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const clock = virtualClock();
  const publisher = memoryPublisher();
  let url = '';
  const tasks = await startCloudTasks({ clock, appEngine: () => url });
  const client = cloudTasksClient({ projectId: 'demo-project', emulatorHost: tasks.address });
  for (const name of queues) await client.createQueue({ parent: LOCATION, queue: { name } });
  // Their time limits run on real time, because the calls do.
  const queueOf = (queue: string) =>
    cloudTasksQueue(client, { queue, target: { appEngine: {} }, callTimeout: '5s' });
  const queue = severalQueues(queues.map((name) => ({ name, queue: queueOf(name) })));
  const server = await startServer(
    {
      authenticate: authentication(
        { appEngine: { queues: queues.map((name) => name.split('/').at(-1) ?? '') } },
        async () => ({ certificates: {}, maxAgeMs: 0 }),
      ),
      republish: republish(
        { publisher, queue, deadLetters: deadLettering(publisher, 'dead-letters') },
        { allowedTopics: [TOPIC], clock, log: silent },
      ),
      log: silent,
    },
    { port: 0, host: '127.0.0.1' },
  );
  url = `http://127.0.0.1:${server.port}`;
  t.after(async () => {
    await client.close();
    await tasks.close();
    await server.close();
  });

  const next = async () => ack();
  const handler = compose(next, [delay(queue, { clock, topic: TOPIC, maxTaskBytes: 1_048_576 })]);
  const context = { consumer: 'delay', source: 'in', log: silent } as unknown as Context;
  const deliver = (attributes: Record<string, string>, change: Partial<Message> = {}): Promise<Outcome> => {
    const message = { id: '7', data: Buffer.from('hello'), attributes, publishTime: new Date(clock.now()) };
    return handler({ ...message, ...change }, context);
  };
  return { clock, publisher, tasks, client, deliver };
}

test('B25, B29: a delayed message arrives after its delay, byte for byte, with its ordering key', async (t) => {
  const { clock, publisher, tasks, deliver } = await later(t);
  const data = Buffer.from([0x00, 0xff, 0xfe, 0x80, 0xc3, 0x28]);
  const attributes = { delay: '60', name: 'Łódź 日本 🚀', googclient_deliveryattempt: '3' };
  assert.deepEqual(await deliver(attributes, { data, orderingKey: 'k1' }), ack('scheduled'));
  await clock.advance(59_999);
  assert.equal(tasks.stats().dispatched, 0);
  await clock.advance(1);
  await until(() => tasks.stats().succeeded === 1);
  assert.deepEqual(publisher.published, [
    {
      topic: TOPIC,
      data,
      attributes: {
        name: 'Łódź 日本 🚀',
        dedupId: 'in/7',
        deliveredAfter: '2030-01-01T00:01:00.000Z',
        originPublishTime: '2030-01-01T00:00:00.000Z',
      },
      orderingKey: 'k1',
    },
  ]);
});

test('B22: 90 days go in hops that the server takes, and arrive once, when they are due', async (t) => {
  const { clock, publisher, tasks, deliver } = await later(t);
  assert.deepEqual(await deliver({ delay: String(90 * 86_400) }), ack('scheduled'));
  for (let hop = 1; hop <= 3; hop += 1) {
    await clock.advance(29.5 * DAY_MS);
    await until(() => tasks.stats().succeeded === hop);
    assert.equal(publisher.published.length, 0);
  }
  await clock.advance(1.5 * DAY_MS - 1);
  assert.equal(tasks.stats().dispatched, 3);
  await clock.advance(1);
  await until(() => tasks.stats().succeeded === 4);
  assert.equal(publisher.published.length, 1);
  assert.equal(tasks.stats().pending, 0);
});

test('B21: the reply to the queue is lost: the task comes again and has the same dedupId', async (t) => {
  const { clock, publisher, tasks, deliver } = await later(t);
  publisher.failOn(1, 'reply lost');
  await deliver({ delay: '1' });
  await clock.advance(1_000);
  await until(() => tasks.stats().inFlight === 0 && tasks.stats().dispatched === 1);
  assert.equal(tasks.stats().succeeded, 0);
  await clock.advance(10_000);
  await until(() => tasks.stats().succeeded === 1);
  assert.deepEqual(
    publisher.published.map(({ attributes }) => attributes['dedupId']),
    ['in/7', 'in/7'],
  );
});

test('B24: 750,000 bytes arrive whole where the cap allows them', async (t) => {
  const { clock, publisher, tasks, deliver } = await later(t);
  const data = Buffer.alloc(750_000, 0xfe);
  assert.deepEqual(await deliver({ delay: '60' }, { data }), ack('scheduled'));
  await clock.advance(60_000);
  await until(() => tasks.stats().succeeded === 1);
  assert.ok(data.equals(publisher.published[0]!.data));
});

test('several queues: each message, delivered twice, has one task, hops go their own ways, and each arrives once', async (t) => {
  const { clock, publisher, tasks, client, deliver } = await later(t, QUEUES);
  const ids = Array.from({ length: 12 }, (_, n) => String(n));
  for (const id of [...ids, ...ids]) {
    const publishTime = new Date(Date.UTC(2030, 0, 1));
    assert.deepEqual(await deliver({ delay: String(31 * 86_400) }, { id, publishTime }), ack('scheduled'));
  }
  assert.equal(tasks.stats().pending, 12);
  const held = await Promise.all(
    QUEUES.map(async (parent) => (await client.listTasks({ parent }))[0].length),
  );
  assert.ok(
    held.every((count) => count > 0),
    `${held.join(' ')} tasks`,
  );
  await clock.advance(29.5 * DAY_MS);
  await until(() => tasks.stats().succeeded === 12);
  assert.deepEqual([publisher.published.length, tasks.stats().pending], [0, 12]);
  await clock.advance(1.5 * DAY_MS);
  await until(() => tasks.stats().succeeded === 24);
  const arrived = publisher.published.map(({ attributes }) => attributes['dedupId']);
  assert.equal(arrived.length, 12);
  assert.deepEqual(new Set(arrived), new Set(ids.map((id) => `in/${id}`)));
  assert.equal(tasks.stats().pending, 0);
});
