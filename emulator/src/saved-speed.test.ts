import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { startCloudTasks } from './cloud-tasks/index.ts';
import { startFirestore } from './firestore/index.ts';
import { manualClock } from './manual-clock.ts';
import { startPubsub } from './pubsub/index.ts';
import { cpuMillisecondsDuring } from './spent.ts';

const COUNT = 1_000;
const TIME = '2029-12-31T00:00:00.123456Z';
const each = <T>(make: (index: number) => T): readonly T[] =>
  Array.from({ length: COUNT }, (_, i) => make(i));

const DATABASE = 'projects/p/databases/(default)';
const documents = each((i) => ({
  name: `${DATABASE}/documents/rooms/${i}`,
  fields: {
    n: { integerValue: String(i) },
    text: { stringValue: 'x'.repeat(200) },
    at: { timestampValue: TIME },
    list: { arrayValue: { values: [{ doubleValue: 1.5 }, { mapValue: { fields: {} } }] } },
  },
  createTime: TIME,
  updateTime: TIME,
}));
const TOPIC = 'projects/p/topics/orders';
const messages = each((i) => ({
  messageId: String(1_000_000 + i),
  publishTime: TIME,
  data: Buffer.alloc(300, i).toString('base64'),
  attributes: { a: 'b', n: String(i) },
  orderingKey: `key ${i % 10}`,
}));
const unacknowledged = messages.map(({ messageId }) => ({ messageId, failures: 1 }));
const QUEUE = 'projects/p/locations/l/queues/q';
const tasks = each((i) => ({
  name: `${QUEUE}/tasks/${i}`,
  httpRequest: { url: 'http://127.0.0.1:1/none', body: Buffer.alloc(300, i).toString('base64') },
  scheduleTime: '2030-01-02T00:00:00Z',
  createTime: TIME,
}));

async function serversOf(t: TestContext) {
  const clock = manualClock();
  const [firestore, pubsub, cloudTasks] = await Promise.all([
    startFirestore({ clock }),
    startPubsub({ clock }),
    startCloudTasks({ clock }),
  ]);
  for (const server of [firestore, pubsub, cloudTasks]) t.after(server.close);
  return { clock, firestore, pubsub, cloudTasks };
}

test('1,000 documents, 1,000 messages and 1,000 tasks are loaded in milliseconds, and reset in fewer', async (t) => {
  const { clock, firestore, pubsub, cloudTasks } = await serversOf(t);
  const subscription = { name: 'projects/p/subscriptions/work', topic: TOPIC, enableMessageOrdering: true };
  const parts = [
    [firestore, { databases: [{ name: DATABASE, documents }] }, firestore.save()],
    [
      pubsub,
      { topics: [{ name: TOPIC }], subscriptions: [{ ...subscription, unacknowledged }], messages },
      pubsub.save(),
    ],
    [cloudTasks, { queues: [{ name: QUEUE, tasks }] }, cloudTasks.save()],
  ] as const;
  const timed = (act: (typeof parts)[number] extends infer P ? (part: P) => void : never): Promise<number> =>
    cpuMillisecondsDuring(() => {
      for (const part of parts) act(part);
    });
  const loads: number[] = [];
  for (let run = 0; run < 3; run += 1) loads.push(await timed(([server, saved]) => server.load(saved)));
  assert.deepEqual(
    [firestore.stats().documents, pubsub.stats().backlog, cloudTasks.stats().pending],
    [COUNT, COUNT, COUNT],
  );
  const resets = await timed(([server, , empty]) => server.load(empty));
  assert.equal(clock.timers(), 0);
  t.diagnostic(
    `load: ${loads.map((ms) => ms.toFixed(1)).join(', ')} ms; reset: ${resets.toFixed(1)} ms of CPU time`,
  );
  assert.ok(Math.min(...loads) < 500 && resets < 500, `load ${loads.join()} ms, reset ${resets} ms`);
});
