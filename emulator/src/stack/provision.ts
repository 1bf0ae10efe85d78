/**
 * Creates the topics, subscriptions and the queue of the topology, through the servers' own gRPC methods.
 */
import type { ServiceDefinition } from '@grpc/grpc-js';
import { cloudTasksDefinition } from '../cloud-tasks/protos.ts';
import { pubsubServiceDefinitions } from '../pubsub/protos.ts';
import { type Caller, caller } from './grpc-call.ts';
import {
  DEAD_LETTERS,
  FUNCTIONS,
  LOCATION,
  type Ports,
  PROJECT,
  QUEUE,
  subscriptionName,
  topicName,
} from './topology.ts';

export async function provision(ports: Ports): Promise<void> {
  const { publisher, subscriber } = pubsubServiceDefinitions();
  await withClient(ports.pubsub, publisher, async (call) => {
    const topics = [...FUNCTIONS.flatMap((name) => [`${name}-in`, `${name}-out`]), DEAD_LETTERS];
    await Promise.all(topics.map((id) => call('CreateTopic', { name: topicName(id) })));
  });
  await withClient(ports.pubsub, subscriber, async (call) => {
    await Promise.all([
      ...FUNCTIONS.map((name) => call('CreateSubscription', pushSubscription(name, ports[name]))),
      ...FUNCTIONS.map((name) => call('CreateSubscription', pullSubscription(`${name}-out`, true))),
      call('CreateSubscription', pullSubscription(DEAD_LETTERS, false)),
    ]);
  });
  await withClient(ports.tasks, cloudTasksDefinition(), (call) =>
    call('CreateQueue', {
      parent: `projects/${PROJECT}/locations/${LOCATION}`,
      queue: {
        name: QUEUE,
        // Without a limit of attempts: a delayed message must outlast a republisher that is down.
        retryConfig: { maxAttempts: -1, minBackoff: { nanos: 100_000_000 }, maxBackoff: { seconds: 5 } },
      },
    }),
  );
}

function pushSubscription(name: string, port: number): object {
  return {
    name: subscriptionName(`${name}-in-sub`),
    topic: topicName(`${name}-in`),
    pushConfig: { pushEndpoint: `http://127.0.0.1:${port}/` },
    // Above the functions' own limit of 60 s for one delivery.
    ackDeadlineSeconds: 90,
    retryPolicy: { minimumBackoff: { nanos: 200_000_000 }, maximumBackoff: { seconds: 5 } },
  };
}

function pullSubscription(topic: string, enableMessageOrdering: boolean): object {
  return {
    name: subscriptionName(`${topic}-sub`),
    topic: topicName(topic),
    ackDeadlineSeconds: 30,
    enableMessageOrdering,
  };
}

async function withClient(
  port: number,
  definition: ServiceDefinition,
  use: (call: Caller['call']) => Promise<unknown>,
): Promise<void> {
  const client = caller(port, definition);
  try {
    await use(client.call);
  } finally {
    client.close();
  }
}
