/**
 * What is started: each packaged function as its environment configures it, the clients that this configuration needs,
 * and the first request, which goes all the way: claimed or numbered, and published, or made a task.
 */
import { ack, compose, type Context, silent, systemClock } from 'pubsub-guarantees';
import { delay } from 'pubsub-guarantees/delay';

export type Case = Readonly<{
  name: string;
  /** Undefined: the republisher. */
  target?: string;
  env: Readonly<Record<string, string>>;
  /** What a program that does nothing else would import as well. */
  clients: readonly string[];
  attributes?: Readonly<Record<string, string>>;
}>;

const PUBSUB = '@google-cloud/pubsub';
const FIRESTORE = '@google-cloud/firestore';
const TASKS = '@google-cloud/tasks';
export const LOCATION = 'projects/demo-project/locations/us-central1';
export const QUEUE = `${LOCATION}/queues/delay-queue`;
export const TOPICS = ['incoming', 'out', 'dead-letters'];

/** `redisPort` undefined: without the case that needs it. */
export function cases(redisPort: number | undefined): readonly Case[] {
  const later = { DELAY_QUEUE: QUEUE, REPUBLISHER_SERVICE: 'republisher' };
  return [
    { name: 'dedup', target: 'dedup', env: {}, clients: [PUBSUB, FIRESTORE] },
    ...(redisPort === undefined
      ? []
      : [
          {
            name: 'dedup on Redis',
            target: 'dedup',
            env: { DEDUP_STORE: 'redis', REDIS_URL: `redis://127.0.0.1:${redisPort}` },
            clients: [PUBSUB, 'ioredis'],
          },
        ]),
    { name: 'delay', target: 'delay', env: later, clients: [PUBSUB, TASKS], attributes: { delay: '3600' } },
    {
      name: 'fifo',
      target: 'fifo',
      env: {},
      clients: [PUBSUB, FIRESTORE],
      attributes: { sequence: '1', sequenceKey: 'KEY' },
    },
    {
      name: 'pipeline',
      target: 'pipeline',
      env: { ...later, SOURCE_TOPIC: 'incoming' },
      clients: [PUBSUB, FIRESTORE, TASKS],
      attributes: { sequence: '1', sequenceKey: 'KEY' },
    },
    {
      name: 'republisher',
      env: { DELAY_QUEUE: QUEUE, ALLOWED_TOPICS: 'out', GAE_ENV: 'standard' },
      clients: [PUBSUB, TASKS, 'google-auth-library'],
    },
  ];
}

/** A message of its own each time: a key or an ID that was seen before would be another path. */
export function pushBody({ attributes = {} }: Case, unique: string): Buffer {
  const own = Object.entries(attributes).map(([key, value]) => [key, value === 'KEY' ? unique : value]);
  const message = {
    messageId: unique,
    data: Buffer.from('cold').toString('base64'),
    attributes: Object.fromEntries(own),
    publishTime: new Date().toISOString(),
  };
  return Buffer.from(
    JSON.stringify({ message, subscription: 'projects/demo-project/subscriptions/incoming-sub' }),
  );
}

/** The body of a task that is due, made as the function makes it. */
export async function taskBody(unique: string): Promise<Buffer> {
  let body: Uint8Array = Buffer.alloc(0);
  const queue = {
    overheadBytes: 0,
    create: async (task: Readonly<{ body: Uint8Array }>) => {
      ({ body } = task);
      return 'created' as const;
    },
  };
  const clock = systemClock();
  const stage = compose(
    async () => ack(),
    [delay(queue, { clock, topic: 'projects/demo-project/topics/out' })],
  );
  const context = { consumer: 'delay', source: 'in', log: silent } as unknown as Context;
  const publishTime = new Date(clock.now() - 5_000);
  await stage({ id: unique, data: Buffer.from('cold'), attributes: { delay: '5' }, publishTime }, context);
  return Buffer.from(body);
}
