/** Subscriptions that no client uses: when they are deleted, and what keeps them. */
import { accepted, never, of, refused, same, until, type PubsubCase } from '../expect.ts';
import { EXPIRATION, PROTO } from '../sources.ts';
import { open, SUB } from '../streams.ts';
import type { Fields, PubsubWorld } from '../world.ts';

const make = of('Expiration of subscriptions');
const DAY_S = 86_400;
const DAY_MS = DAY_S * 1_000;
const seconds = (count: number) => ({ seconds: String(count), nanos: 0 });

/** The shortest that there is. */
const ONE_DAY = {
  messageRetentionDuration: seconds(600),
  expirationPolicy: { ttl: seconds(DAY_S) },
};

const get = (world: PubsubWorld) => world.call('GetSubscription', { subscription: world.subscription(SUB) });
const isThere = (world: PubsubWorld, when: string) => accepted(get(world), `GetSubscription ${when}`);
const isGone = (world: PubsubWorld) => refused(get(world), 'NOT_FOUND', 'GetSubscription');

type Prepared = Readonly<{ options?: Fields; use(): Promise<unknown> }>;

/** Uses it shortly before the end of its first day: it must be there until a day after that, and then be gone. */
const kept = (what: string, prepare: (world: PubsubWorld) => Promise<Prepared>) =>
  make(
    `${what} keeps it for another ttl`,
    EXPIRATION,
    async (world) => {
      const { options, use } = await prepare(world);
      await world.create('orders', SUB, { ...ONE_DAY, ...options });
      await world.pass(DAY_MS - 1_000);
      await use();
      await world.pass(DAY_MS - 1_000);
      await isThere(world, 'a day after its use');
      await world.pass(2_000);
      await isGone(world);
    },
    'waits two days',
  );

export const expiring: readonly PubsubCase[] = [
  make(
    'One that is not used is there until its ttl has passed, and then gone',
    PROTO,
    async (world) => {
      await world.create('orders', SUB, ONE_DAY);
      await world.pass(DAY_MS - 1_000);
      await isThere(world, 'before');
      await world.pass(2_000);
      await isGone(world);
      const answer = await world.call('ListTopicSubscriptions', { topic: world.topic('orders') });
      same(answer['subscriptions'], []);
    },
    'waits a day',
  ),
  make(
    'Without a policy that is after 31 days',
    PROTO,
    async (world) => {
      await world.create('orders', SUB);
      await world.pass(31 * DAY_MS - 1_000);
      await isThere(world, 'after nearly 31 days');
      await world.pass(2_000);
      await isGone(world);
    },
    'waits 31 days',
  ),
  make(
    'With a policy without a ttl it is there for ever',
    PROTO,
    async (world) => {
      await world.create('orders', SUB, { expirationPolicy: { ttl: null } });
      await world.pass(3_650 * DAY_MS);
      await isThere(world, 'after ten years');
    },
    'waits ten years',
  ),
  make('A ttl below the message retention is INVALID_ARGUMENT', EXPIRATION, async (world) => {
    await world.pubsub.createTopic('orders');
    const options = { ...ONE_DAY, messageRetentionDuration: seconds(2 * DAY_S) };
    await refused(world.create('orders', SUB, options), 'INVALID_ARGUMENT', '1 day, with 2 of retention');
  }),
  kept('A pull', async (world) => ({ use: () => world.pull(SUB) })),
  kept('A change of its properties', async (world) => ({
    use: () =>
      world.call('UpdateSubscription', {
        subscription: { name: world.subscription(SUB), labels: { team: 'red' } },
        updateMask: { paths: ['labels'] },
      }),
  })),
  kept('A push that succeeds', async (world) => {
    const { url, got, open: unanswered } = await world.endpoint();
    return {
      options: { pushConfig: { pushEndpoint: url } },
      async use() {
        await world.publish('orders', 'a');
        await until(() => got.length > 0 && unanswered() === 0, 'an answered push');
        await never(() => got.length > 1, 'it was pushed again');
      },
    };
  }),
  make(
    'An open stream keeps it',
    EXPIRATION,
    async (world) => {
      await world.create('orders', SUB, ONE_DAY);
      const stream = open(world);
      await until(() => stream.responses.length > 0, 'a first answer');
      await world.pass(40 * DAY_MS);
      await isThere(world, 'after 40 days');
      stream.end();
      await stream.ended;
      await world.pass(DAY_MS + 1_000);
      await isGone(world);
    },
    'waits 41 days',
  ),
  make(
    'Publishing to its topic does not keep it',
    EXPIRATION,
    async (world) => {
      await world.create('orders', SUB, ONE_DAY);
      await world.pass(DAY_MS - 1_000);
      await world.publish('orders', 'a');
      await world.pass(2_000);
      await isGone(world);
    },
    'waits a day',
  ),
];
