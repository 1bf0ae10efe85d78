/**
 * Creates the topics, subscriptions and the queue of the topology, through the servers' own gRPC methods. What is there
 * already stays: a loaded state has it all, and so has an emulator that was running before.
 */
import { type ServiceError, status, type ServiceDefinition } from '@grpc/grpc-js';
import { cloudTasksDefinition } from '../cloud-tasks/protos.ts';
import { pubsubServiceDefinitions } from '../pubsub/protos.ts';
import { type Caller, caller } from './grpc-call.ts';
import {
  DEAD_LETTERS,
  FORWARDING,
  type FunctionName,
  FUNCTIONS,
  inputOf,
  LOCATION,
  PROJECT,
  QUEUE,
  subscriptionName,
  topicName,
  TOPICS,
  WAKE_QUEUE,
} from './topology.ts';

export type ProvisionPorts = Readonly<{
  addresses: Readonly<{ pubsub: string; tasks: string }>;
  /** Where each function listens; its push subscription goes there, also one that existed. */
  functions: Readonly<Record<FunctionName, string>>;
  /**
   * Whether pushes get a retry policy. Google's emulator (0.8.20) never pushes a message again that it could not deliver
   * for some seconds under one; without it tries every second.
   */
  pushRetryPolicy: boolean;
}>;

export async function provision({ addresses, functions, pushRetryPolicy }: ProvisionPorts): Promise<void> {
  const { publisher, subscriber } = pubsubServiceDefinitions();
  await withClient(addresses.pubsub, publisher, async (call) => {
    await Promise.all(TOPICS.map((id) => created(call('CreateTopic', { name: topicName(id) }))));
  });
  await withClient(addresses.pubsub, subscriber, async (call) => {
    const create = (subscription: object) => created(call('CreateSubscription', subscription));
    const pushed = async (name: FunctionName): Promise<void> => {
      const { retryPolicy, ...rest } = pushSubscription(name, functions[name]);
      const subscription = pushRetryPolicy ? { ...rest, retryPolicy } : rest;
      if (await create(subscription)) return;
      await call('ModifyPushConfig', {
        subscription: subscription.name,
        pushConfig: subscription.pushConfig,
      });
    };
    await Promise.all([
      ...FUNCTIONS.map(pushed),
      ...FORWARDING.map((name) => create(pullSubscription(`${name}-out`, true))),
      create(pullSubscription(DEAD_LETTERS, false)),
    ]);
  });
  await withClient(addresses.tasks, cloudTasksDefinition(), async (call) => {
    const parent = `projects/${PROJECT}/locations/${LOCATION}`;
    const create = (name: string, maxAttempts: number): Promise<boolean> => {
      const retryConfig = { maxAttempts, minBackoff: { nanos: 100_000_000 }, maxBackoff: { seconds: 5 } };
      return created(call('CreateQueue', { parent, queue: { name, retryConfig } }));
    };
    // Without a limit of attempts: a delayed message must outlast a republisher that is down. A wake-up need not.
    await Promise.all([create(QUEUE, -1), create(WAKE_QUEUE, 5)]);
  });
}

/** False when it was there before. */
async function created(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    if ((error as ServiceError).code === status.ALREADY_EXISTS) return false;
    throw error;
  }
}

/** Moving the clock by weeks must not delete subscriptions that were not used meanwhile; the deployed ones have it too. */
export const NEVER_EXPIRES = { expirationPolicy: {} };

/** What a function's push subscription sends its messages to. */
export const pushEndpoint = (functionUrl: string): string => `${functionUrl}/`;

function pushSubscription(name: FunctionName, functionUrl: string) {
  return {
    name: subscriptionName(`${inputOf(name)}-sub`),
    topic: topicName(inputOf(name)),
    ...NEVER_EXPIRES,
    pushConfig: { pushEndpoint: pushEndpoint(functionUrl) },
    // Above the functions' own limit of 60 s for one delivery.
    ackDeadlineSeconds: 90,
    retryPolicy: { minimumBackoff: { nanos: 200_000_000 }, maximumBackoff: { seconds: 5 } },
  };
}

function pullSubscription(topic: string, enableMessageOrdering: boolean): object {
  return {
    name: subscriptionName(`${topic}-sub`),
    topic: topicName(topic),
    ...NEVER_EXPIRES,
    ackDeadlineSeconds: 30,
    enableMessageOrdering,
  };
}

async function withClient(
  address: string,
  definition: ServiceDefinition,
  use: (call: Caller['call']) => Promise<unknown>,
): Promise<void> {
  const client = caller(address, definition);
  try {
    await use(client.call);
  } finally {
    client.close();
  }
}
