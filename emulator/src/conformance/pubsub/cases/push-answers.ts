/** What a push endpoint's answer means, and when a message is pushed again. */
import assert from 'node:assert/strict';
import { never, of, until, type PubsubCase, same } from '../expect.ts';
import { pushedText, type Answering } from '../endpoint.ts';
import { ORDERING, PROTO, PUSH, PUSH_BACKOFF } from '../sources.ts';
import { type Fields, type PubsubWorld } from '../world.ts';

const answers = of('Push, answers');
const again = of('Push, again');
const SUB = 'orders-sub';
const seconds = (count: number) => ({ seconds: String(count), nanos: 0 });

async function pushing(world: PubsubWorld, answer: Answering, options: Fields = {}) {
  const endpoint = await world.endpoint(answer);
  await world.create('orders', SUB, { pushConfig: { pushEndpoint: endpoint.url }, ...options });
  return endpoint;
}

/** Lets time go on in small steps until the endpoint has had so many requests, at most ten seconds. */
async function waitFor(
  world: PubsubWorld,
  got: readonly unknown[],
  count: number,
  what: string,
): Promise<void> {
  for (let passed = 0; passed < 10_000 && got.length < count; passed += 250) {
    await until(() => got.length >= count, what, 20).catch(() => {});
    if (got.length < count) await world.pass(250);
  }
  assert.ok(got.length >= count, `within 10 s not ${what}`);
}

const status =
  (code: number): Answering =>
  (_, index, response) => {
    if (index > 0 || code !== 102) return index > 0 ? 204 : code;
    // 102 is an interim answer; the final one does not come.
    response.writeProcessing();
    return undefined;
  };

export const pushAnswers: readonly PubsubCase[] = [
  ...[102, 200, 201, 202, 204].map((code) =>
    answers(`Status ${code} acknowledges`, PUSH, async (world) => {
      const { got } = await pushing(world, status(code));
      await world.publish('orders', 'a');
      await until(() => got.length > 0, 'pushed', 8_000);
      // The server reads the answer before time goes on.
      await never(() => got.length > 1, 'it was pushed again at once', 300);
      // Longer than the deadline, and than the backoff would be.
      await world.pass(12_000);
      await never(() => got.length > 1, 'it was pushed again');
    }),
  ),
  ...[203, 206, 301, 400, 401, 404, 408, 429, 500, 503].map((code) =>
    answers(`Status ${code} is a nack: the message is pushed again`, PUSH, async (world) => {
      const { got } = await pushing(world, status(code));
      await world.publish('orders', 'a');
      await waitFor(world, got, 2, 'pushed again');
    }),
  ),
  answers('A connection that breaks off is a nack', PUSH, async (world) => {
    const { got } = await pushing(world, (_, index, response) => {
      if (index > 0) return 204;
      response.destroy();
      return undefined;
    });
    await world.publish('orders', 'a');
    await waitFor(world, got, 2, 'pushed again');
  }),
  answers(
    'An endpoint that does not answer within the ack deadline gets the message again',
    PROTO,
    async (world) => {
      const { got } = await pushing(world, (_, index) => (index > 0 ? 204 : undefined));
      await world.publish('orders', 'a');
      await until(() => got.length > 0, 'pushed', 8_000);
      await world.pass(8_500);
      await never(() => got.length > 1, 'it was pushed again before the deadline of 10 s');
      await waitFor(world, got, 2, 'pushed again');
    },
  ),
  answers('The ack deadline of the subscription is the limit of the request', PROTO, async (world) => {
    const { got } = await pushing(world, (_, index) => (index > 0 ? 204 : undefined), {
      ackDeadlineSeconds: 20,
    });
    await world.publish('orders', 'a');
    await until(() => got.length > 0, 'pushed', 8_000);
    await world.pass(18_000);
    await never(() => got.length > 1, 'it was pushed again before the deadline of 20 s');
  }),

  again('The retry policy holds from the first redelivery on', PROTO, async (world) => {
    const retryPolicy = { minimumBackoff: seconds(3), maximumBackoff: seconds(60) };
    const { got } = await pushing(world, (_, index) => (index > 0 ? 204 : 500), { retryPolicy });
    await world.publish('orders', 'a');
    await until(() => got.length > 0, 'pushed', 8_000);
    await world.pass(2_000);
    await never(() => got.length > 1, 'it was pushed again within 2 s of a minimum backoff of 3 s');
    await waitFor(world, got, 2, 'pushed again');
  }),
  again('Without a retry policy the backoff grows', PUSH_BACKOFF, async (world) => {
    const at: number[] = [];
    const { got } = await pushing(world, () => {
      at.push(world.now());
      return 500;
    });
    await world.publish('orders', 'a');
    for (let passed = 0; passed < 20_000 && got.length < 6; passed += 50) {
      await world.pass(50);
    }
    const gaps = at.slice(1).map((time, index) => time - (at[index] ?? 0));
    assert.ok(gaps.length >= 5, `${at.length} pushes within 20 s`);
    const [first = 0, last = 0] = [gaps[0], gaps[4]];
    assert.ok(last >= first * 4, `the gaps are ${gaps.map((gap) => Math.round(gap)).join(', ')} ms`);
  }),
  again('A message is pushed again in the same form, with the attempt counted', PUSH, async (world) => {
    await world.pubsub.createTopic('orders');
    const deadLetterPolicy = { deadLetterTopic: world.topic('orders'), maxDeliveryAttempts: 5 };
    const { got } = await pushing(world, (_, index) => (index > 0 ? 204 : 500), { deadLetterPolicy });
    await world.publish('orders', 'a');
    await waitFor(world, got, 2, 'pushed again');
    const attempts = got.map(({ body }) => (JSON.parse(body.toString()) as Fields)['deliveryAttempt']);
    same(attempts.slice(0, 2), [1, 2]);
  }),
  again('Many pushes are in flight at once', PUSH_BACKOFF, async (world) => {
    const endpoint = await pushing(world, () => undefined);
    await world.publish('orders', ...Array.from({ length: 20 }, (_, index) => `${index}`));
    await until(() => endpoint.open() >= 20, 'twenty at once', 5_000).catch(() => {});
    assert.ok(endpoint.open() >= 20, `of 20 messages ${endpoint.open()} were in flight at once`);
  }),
  again('Of one ordering key one push is in flight at a time, in order', ORDERING, async (world) => {
    let open = 0;
    let most = 0;
    const { got } = await pushing(
      world,
      async () => {
        most = Math.max(most, ++open);
        await new Promise((resolve) => setTimeout(resolve, 20));
        open -= 1;
        return 204;
      },
      { enableMessageOrdering: true },
    );
    const contents = ['a1', 'a2', 'a3', 'a4'];
    for (const each of contents) await world.publish('orders', { data: Buffer.from(each), orderingKey: 'a' });
    await waitFor(world, got, 4, 'four pushes');
    same([got.map(pushedText), most], [contents, 1]);
  }),
  again(
    'A failed push of an ordering key comes again before the next of the key',
    ORDERING,
    async (world) => {
      const { got } = await pushing(world, (_, index) => (index === 1 ? 500 : 204), {
        enableMessageOrdering: true,
      });
      for (const each of ['a1', 'a2', 'a3']) {
        await world.publish('orders', { data: Buffer.from(each), orderingKey: 'a' });
      }
      await waitFor(world, got, 4, 'four pushes');
      same(got.map(pushedText), ['a1', 'a2', 'a2', 'a3']);
    },
  ),
  again('Every one of 200 messages is pushed', PUSH, async (world) => {
    const { got } = await pushing(world, () => 204);
    await world.publish('orders', ...Array.from({ length: 200 }, (_, index) => `${index}`));
    await until(() => new Set(got.map(pushedText)).size === 200, '200 messages pushed', 10_000);
  }),
];
