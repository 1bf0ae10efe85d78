/**
 * The clients of Google and Redis that a function needs, made from its configuration. Only those that it needs are
 * loaded: a cold start pays for what it imports. Firestore behind schedules and payloads is loaded by the first message
 * that has one.
 */
import type { Firestore } from '@google-cloud/firestore';
import type { Clock, Log, Publisher } from 'pubsub-guarantees';
import type { ClaimStore, SubscriptionWindows } from 'pubsub-guarantees/dedup';
import {
  type CounterStart,
  type StreamAdmin,
  type StreamStore,
  type WakeTasks,
  wakeTasks,
} from 'pubsub-guarantees/order';
import { lazyPayloads, type PayloadStore } from 'pubsub-guarantees/payload';
import { lazyLedger, type Ledger } from 'pubsub-guarantees/schedules';
import type { TaskQueue } from 'pubsub-guarantees/tasks';
import { pubsubClient, pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { claimStore } from './claim-clients.ts';
import type { Config } from './config.ts';
import { orderCall, orderTransaction } from './limits.ts';
import { counterStart, type OutboxPorts, outboxPorts } from './outbox-clients.ts';
import { type SagaPorts, sagaPorts } from './saga-clients.ts';
import { taskQueue, wakeQueue } from './task-clients.ts';

export type Ports = Readonly<{
  clock: Clock;
  log: Log;
  publisher: Publisher;
  claims: ClaimStore | undefined;
  tasks: TaskQueue | undefined;
  streams: (StreamStore & StreamAdmin) | undefined;
  ledger: Ledger | undefined;
  payloads: PayloadStore | undefined;
  /** Where streams begin, if at the publisher's counter. */
  counters?: CounterStart | undefined;
  outbox?: OutboxPorts | undefined;
  wakes?: WakeTasks | undefined;
  sagas?: SagaPorts | undefined;
  /** What the subscription is set to; undefined when that is not to be had. Within seconds; never rejects. */
  subscriptionWindows: (subscription: string) => Promise<SubscriptionWindows | undefined>;
  /** What Redis does when its memory is full, once Redis answers. Undefined: no Redis, or it does not say. */
  evictionPolicy: Promise<string | undefined>;
}>;

export async function connect(config: Config, clock: Clock, log: Log): Promise<Ports> {
  const firestore = lazyFirestore(config);
  const needsOrder = config.name === 'fifo' || config.name === 'pipeline';
  const pubsub = pubsubClient({ projectId: config.project, emulatorHost: config.emulators.pubsub });
  const publisher = pubsubPublisher(pubsub);
  const needsCounters = needsOrder && config.order.start === 'counter';
  const [once, tasks, streams, wakes, counters, outbox, sagas] = await Promise.all([
    // A saga's claims are those of its inbox.
    config.saga === undefined && config.dedup ? claimStore(config, config.dedup, firestore, log) : undefined,
    config.delay && taskQueue(config.delay, config.emulators, clock),
    needsOrder ? streamStore(config, firestore, clock) : undefined,
    config.wake && wakeQueue(config.wake, config.emulators, clock),
    needsCounters ? firestore().then((client) => counterStart(config, client, clock)) : undefined,
    config.outbox.isOn
      ? firestore().then((client) => outboxPorts(config, client, publisher, clock, log))
      : undefined,
    config.saga && sagaPorts(config, config.saga, firestore, clock),
  ]);
  return {
    clock,
    log,
    publisher,
    claims: once?.claims,
    tasks,
    streams,
    counters,
    outbox,
    sagas,
    wakes: wakes && wakeTasks(wakes, { consumer: config.consumer, clock, log }),
    ledger:
      config.delay !== undefined && config.delay.ledger !== 'off'
        ? lazyLedger(() => scheduleLedger(config, firestore, clock))
        : undefined,
    payloads:
      config.name === 'fifo' || config.delay?.payloads === true
        ? lazyPayloads(() => payloadStore(config, firestore, clock))
        : undefined,
    subscriptionWindows: async (subscription) => {
      const { subscriptionWindows } = await import('pubsub-guarantees/receive/pubsub');
      return subscriptionWindows(pubsub, subscription);
    },
    evictionPolicy: once?.evictionPolicy ?? Promise.resolve(undefined),
  };
}

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

async function streamStore(
  config: Config,
  firestore: LazyFirestore,
  clock: Clock,
): Promise<StreamStore & StreamAdmin> {
  const { firestoreStreams } = await import('pubsub-guarantees/order/firestore');
  return firestoreStreams(await firestore(), {
    collection: `${config.firestore.collectionPrefix}-order`,
    callTimeout: orderCall(config.order.lease),
    transactionTimeout: orderTransaction(config.order.lease),
    clock,
  });
}

async function scheduleLedger(config: Config, firestore: LazyFirestore, clock: Clock): Promise<Ledger> {
  const { firestoreLedger } = await import('pubsub-guarantees/schedules/firestore');
  return firestoreLedger(await firestore(), {
    collection: `${config.firestore.collectionPrefix}-schedules`,
    clock,
  });
}

async function payloadStore(config: Config, firestore: LazyFirestore, clock: Clock): Promise<PayloadStore> {
  const { firestorePayloads } = await import('pubsub-guarantees/payload/firestore');
  return firestorePayloads(await firestore(), {
    collection: `${config.firestore.collectionPrefix}-payload`,
    clock,
  });
}
