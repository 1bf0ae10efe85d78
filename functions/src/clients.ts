/**
 * The clients of Google and Redis that a function needs, made from its configuration. Only those that it needs are
 * loaded: a cold start pays for what it imports. Firestore behind schedules and payloads is loaded by the first message
 * that has one. The emulator variables are read by the clients themselves, except
 * that of Cloud Tasks, which its client does not know.
 */
import type { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import {
  type ClaimStore,
  type Clock,
  type Duration,
  lazyLedger,
  lazyPayloads,
  type Ledger,
  type Log,
  type OrderStore,
  type PayloadRoom,
  type Publisher,
  severalQueues,
  type SubscriptionWindows,
  type TaskQueue,
  toMilliseconds,
} from 'pubsub-guarantees';
import { DEFAULT_COLLECTION_PREFIX } from 'pubsub-guarantees/environment';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import type { Config, DedupConfig } from './config.ts';
import type { DelayConfig } from './delay-config.ts';

export type Ports = Readonly<{
  clock: Clock;
  log: Log;
  publisher: Publisher;
  claims: ClaimStore | undefined;
  tasks: TaskQueue | undefined;
  orders: OrderStore | undefined;
  ledger: Ledger | undefined;
  payloads: PayloadRoom | undefined;
  /** What the subscription is set to; undefined when that is not to be had. Within seconds; never rejects. */
  subscriptionWindows: (subscription: string) => Promise<SubscriptionWindows | undefined>;
  /** What Redis does when its memory is full, once Redis answers. Undefined: no Redis, or it does not tell. */
  evictionPolicy: Promise<string | undefined>;
}>;

export async function connect(config: Config, clock: Clock, log: Log): Promise<Ports> {
  const firestore = lazyFirestore(config);
  const needsOrder = config.name === 'fifo' || config.name === 'pipeline';
  const [once, tasks, orders] = await Promise.all([
    config.dedup && claimStore(config, config.dedup, firestore, log),
    config.delay && taskQueue(config.delay, clock),
    needsOrder ? orderStore(config, firestore) : undefined,
  ]);
  const pubsub = new PubSub({ projectId: config.project });
  return {
    clock,
    log,
    publisher: pubsubPublisher(pubsub),
    claims: once?.claims,
    tasks,
    orders,
    ledger:
      config.delay !== undefined && config.delay.ledger !== 'off'
        ? lazyLedger(() => scheduleLedger(config, firestore, clock))
        : undefined,
    payloads:
      config.name === 'fifo' || config.delay?.payloads === true
        ? lazyPayloads(() => payloadRoom(config, firestore, clock))
        : undefined,
    subscriptionWindows: async (subscription) => {
      const { subscriptionWindows } = await import('pubsub-guarantees/receive/pubsub');
      return subscriptionWindows(pubsub, subscription);
    },
    evictionPolicy: once?.evictionPolicy ?? Promise.resolve(undefined),
  };
}

/** Each record keeps it for days, so the usual one is short. */
const redisPrefix = (prefix: string): string =>
  prefix === DEFAULT_COLLECTION_PREFIX ? 'ps-once:' : `${prefix}:claims:`;

type LazyFirestore = () => Promise<Firestore>;

/** One client for all stores of the process, made when the first of them asks: it is slow to load. */
function lazyFirestore(config: Config): LazyFirestore {
  let made: Promise<Firestore> | undefined;
  return () => {
    made ??= import('@google-cloud/firestore').then(
      ({ Firestore }) => new Firestore({ projectId: config.project, databaseId: config.firestore.database }),
    );
    return made;
  };
}

async function claimStore(
  config: Config,
  dedup: DedupConfig,
  firestore: LazyFirestore,
  log: Log,
): Promise<Readonly<{ claims: ClaimStore; evictionPolicy?: Promise<string | undefined> }>> {
  if (dedup.redisUrl === undefined) {
    const { firestoreClaims } = await import('pubsub-guarantees/dedup/firestore');
    return {
      claims: firestoreClaims(await firestore(), {
        collection: `${config.firestore.collectionPrefix}-claims`,
      }),
    };
  }
  const [{ Redis }, { evictionPolicy, redisClaims }] = await Promise.all([
    import('ioredis'),
    import('pubsub-guarantees/dedup/redis'),
  ]);
  const redis = new Redis(dedup.redisUrl, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
  });
  // Without a listener a lost connection would end the process; the store answers each call with its own error.
  redis.on('error', (error: Error) => log.warn('Redis is not reachable', { error: error.message }));
  // Asked once it answers: a Redis that is down must not keep the function from starting.
  const policy = new Promise<string | undefined>((resolve) => {
    redis.once('ready', () => resolve(evictionPolicy(redis)));
  });
  return {
    claims: redisClaims(redis, {
      prefix: redisPrefix(config.firestore.collectionPrefix),
      timeout: withinLease(dedup.lease, '5s'),
    }),
    evictionPolicy: policy,
  };
}

async function orderStore(config: Config, firestore: LazyFirestore): Promise<OrderStore> {
  const { firestoreOrder } = await import('pubsub-guarantees/order/firestore');
  return firestoreOrder(await firestore(), {
    collection: `${config.firestore.collectionPrefix}-order`,
  });
}

async function scheduleLedger(config: Config, firestore: LazyFirestore, clock: Clock): Promise<Ledger> {
  const { firestoreLedger } = await import('pubsub-guarantees/schedules/firestore');
  return firestoreLedger(await firestore(), {
    collection: `${config.firestore.collectionPrefix}-schedules`,
    clock,
  });
}

async function payloadRoom(config: Config, firestore: LazyFirestore, clock: Clock): Promise<PayloadRoom> {
  const { firestorePayloads } = await import('pubsub-guarantees/payload/firestore');
  return firestorePayloads(await firestore(), {
    collection: `${config.firestore.collectionPrefix}-payload`,
    clock,
  });
}

async function taskQueue(delay: DelayConfig, clock: Clock): Promise<TaskQueue> {
  const { cloudTasksClient, cloudTasksQueue } = await import('pubsub-guarantees/delay/cloud-tasks');
  const client = cloudTasksClient({
    ...(delay.emulatorHost !== undefined && { emulatorHost: delay.emulatorHost }),
  });
  const target = 'service' in delay.republisher ? { appEngine: delay.republisher } : delay.republisher;
  // Their clock is that of the delivery, whose deadline they keep to.
  return severalQueues(
    delay.queues.map((queue) => ({ name: queue, queue: cloudTasksQueue(client, { queue, target, clock }) })),
  );
}

/** A call that takes as long as the lease that it asks for is too late when it is answered: at most half of it. */
function withinLease(lease: Duration, longest: Duration): Duration {
  return `${Math.min(Math.floor(toMilliseconds(lease) / 2), toMilliseconds(longest))}ms`;
}
