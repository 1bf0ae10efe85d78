/** When a message comes again: ack deadlines, retry policies, and how long it is kept. */
import assert from 'node:assert/strict';
import { of, type PubsubCase, same } from '../expect.ts';
import { PROTO } from '../sources.ts';
import { texts, type Fields, type PubsubWorld } from '../world.ts';

const deadline = of('Ack deadlines');
const retry = of('Retry policy');
const keep = of('Retention');
const SUB = 'orders-sub';
const DAY_MS = 86_400_000;
const seconds = (count: number) => ({ seconds: String(count), nanos: 0 });
const policy = (minimum: number, maximum: number): Fields => ({
  retryPolicy: { minimumBackoff: seconds(minimum), maximumBackoff: seconds(maximum) },
});

async function one(world: PubsubWorld, options: Fields = {}) {
  await world.create('orders', SUB, options);
  await world.publish('orders', 'a');
  const [got = assert.fail('nothing came')] = await world.receive(SUB, 1);
  return got;
}

const absent = async (world: PubsubWorld, when: string): Promise<void> => {
  same(texts(await world.pull(SUB)), '', `the message came again ${when}`);
};
const back = async (world: PubsubWorld, when: string) => {
  const [got = assert.fail(`the message did not come again ${when}`)] = await world.receive(SUB, 1);
  return got;
};

export const deadlines: readonly PubsubCase[] = [
  deadline(
    'A message comes again when its deadline of 10 s has passed, and not before',
    PROTO,
    async (world) => {
      await one(world);
      await world.pass(9_000);
      await absent(world, 'after 9 s');
      await world.pass(1_500);
      await back(world, 'after 10.5 s');
    },
  ),
  deadline('The deadline of the subscription counts', PROTO, async (world) => {
    await one(world, { ackDeadlineSeconds: 20 });
    await world.pass(18_500);
    await absent(world, 'after 18.5 s');
    await world.pass(2_000);
    await back(world, 'after 20.5 s');
  }),
  deadline('ModifyAckDeadline counts from the call', PROTO, async (world) => {
    const got = await one(world);
    await world.pass(5_000);
    await world.modify(SUB, 10, got);
    await world.pass(8_500);
    await absent(world, '8.5 s after the call');
    await world.pass(2_000);
    await back(world, '10.5 s after the call');
  }),
  deadline('ModifyAckDeadline may shorten', PROTO, async (world) => {
    await world.modify(SUB, 2, await one(world, { ackDeadlineSeconds: 60 }));
    await world.pass(1_000);
    await absent(world, 'after 1 s');
    await world.pass(1_500);
    await back(world, 'after 2.5 s');
  }),
  deadline('ModifyAckDeadline does not change the subscription', PROTO, async (world) => {
    await world.modify(SUB, 600, await one(world));
    const { ackDeadlineSeconds } = await world.call('GetSubscription', {
      subscription: world.subscription(SUB),
    });
    same(ackDeadlineSeconds, 10);
  }),
  deadline(
    'A message may be held for 10 minutes',
    PROTO,
    async (world) => {
      await world.modify(SUB, 600, await one(world));
      await world.pass(599_000);
      await absent(world, 'after 599 s');
      await world.pass(1_500);
      await back(world, 'after 600.5 s');
    },
    'waits ten minutes',
  ),

  retry('The first redelivery after a nack waits for the minimum backoff', PROTO, async (world) => {
    await world.nack(SUB, await one(world, policy(3, 60)));
    await world.pass(2_000);
    await absent(world, 'after 2 s of a minimum backoff of 3 s');
    await world.pass(1_500);
    await back(world, 'after 3.5 s');
  }),
  retry(
    'The first redelivery after an expired deadline waits for the minimum backoff',
    PROTO,
    async (world) => {
      await one(world, policy(3, 60));
      await world.pass(12_000);
      await absent(world, '2 s after the deadline');
      await world.pass(2_000);
      await back(world, '4 s after the deadline');
    },
  ),
  retry('The backoff grows exponentially', PROTO, async (world) => {
    let got = await one(world, policy(2, 60));
    for (const least of [2, 4, 8]) {
      await world.nack(SUB, got);
      await world.pass(least * 1_000 - 700);
      await absent(world, `before ${least} s`);
      await world.pass(1_500);
      got = await back(world, `after ${least} s`);
    }
  }),
  retry('The backoff stops growing at the maximum', PROTO, async (world) => {
    let got = await one(world, policy(1, 2));
    for (const least of [1, 2, 2, 2]) {
      await world.nack(SUB, got);
      await world.pass(least * 1_000 - 700);
      await absent(world, `before ${least} s`);
      await world.pass(1_500);
      got = await back(world, `after ${least} s`);
    }
  }),
  retry('A backoff holds back its own message only', PROTO, async (world) => {
    await world.nack(SUB, await one(world, policy(60, 60)));
    await world.publish('orders', 'b');
    same(texts(await world.receive(SUB, 1)), 'b');
  }),
  retry('Without a retry policy an expired message comes again at once', PROTO, async (world) => {
    await one(world);
    await world.pass(10_300);
    await back(world, 'after 10.3 s');
  }),
  retry('A policy that is taken away no longer counts', PROTO, async (world) => {
    let got = await one(world, policy(60, 60));
    const subscription = { name: world.subscription(SUB), retryPolicy: null };
    await world.call('UpdateSubscription', { subscription, updateMask: { paths: ['retry_policy'] } });
    await world.nack(SUB, got);
    got = await back(world, 'at once');
    same(texts([got]), 'a');
  }),

  keep(
    'A message is kept for 7 days unless configured otherwise',
    PROTO,
    async (world) => {
      await world.create('orders', SUB);
      await world.publish('orders', 'a');
      await world.pass(7 * DAY_MS - 60_000);
      same(texts(await world.receive(SUB, 1)), 'a');
    },
    'waits seven days',
  ),
  keep(
    'A message is gone when its 7 days are over',
    PROTO,
    async (world) => {
      await world.create('orders', SUB);
      await world.publish('orders', 'a');
      await world.pass(7 * DAY_MS + 60_000);
      await absent(world, 'after 7 days');
    },
    'waits seven days',
  ),
  keep(
    'The retention of the subscription counts',
    PROTO,
    async (world) => {
      await world.create('orders', SUB, { messageRetentionDuration: seconds(600) });
      await world.publish('orders', 'a');
      await world.pass(599_000);
      await world.nack(SUB, ...(await world.receive(SUB, 1)));
      await world.pass(2_000);
      await absent(world, 'after 601 s');
    },
    'waits ten minutes',
  ),
  keep(
    'What the topic keeps longer can still be delivered',
    PROTO,
    async (world) => {
      await world.call('CreateTopic', {
        name: world.topic('orders'),
        messageRetentionDuration: seconds(3600),
      });
      await world.create('orders', SUB, { messageRetentionDuration: seconds(600) });
      await world.publish('orders', 'a');
      await world.pass(1_800_000);
      same(texts(await world.receive(SUB, 1)), 'a');
    },
    'waits half an hour',
  ),
];
