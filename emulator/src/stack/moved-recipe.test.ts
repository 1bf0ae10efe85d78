/** The recipe of docs/local.md at a size that a shop has: a delay of 40 days, and a move of 45, beside a subscriber. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Message, PubSub } from '@google-cloud/pubsub';
import { until } from '../until.ts';
import { startToolkit } from './toolkit.ts';

const COUNT = 600;
const DAY_MS = 86_400_000;

test('600 messages with a delay of 40 days arrive once each in a move of 45 days', async (t) => {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const toolkit = await startToolkit();
  const pubsub = new PubSub({ apiEndpoint: toolkit.addresses.pubsub, projectId: toolkit.addresses.project });
  const arrivals: Message[] = [];
  const subscription = pubsub.subscription('delay-out-sub');
  t.after(async () => {
    await subscription.close();
    await pubsub.close();
    await toolkit.close();
  });
  subscription.on('message', (message: Message) => {
    arrivals.push(message);
    message.ack();
  });
  const topic = pubsub.topic('delay-in');
  const attributes = { delay: String(40 * 86_400) };
  await Promise.all(
    Array.from({ length: COUNT }, (_, n) =>
      topic.publishMessage({ data: Buffer.from(String(n)), attributes }),
    ),
  );
  const holds = (name: 'pubsub' | 'tasks', field: string): number =>
    Number(Reflect.get(toolkit.state()[name] as object, field));
  await until(() => holds('tasks', 'pending') === COUNT && holds('pubsub', 'outstanding') === 0);
  const start = performance.now();
  await toolkit.clock.advance(45 * DAY_MS);
  t.diagnostic(`the move took ${Math.round(performance.now() - start)} ms`);
  await until(() => arrivals.length >= COUNT && holds('pubsub', 'outstanding') === 0);
  assert.equal(arrivals.length, COUNT);
  assert.equal(new Set(arrivals.map(({ data }) => data.toString())).size, COUNT);
});
