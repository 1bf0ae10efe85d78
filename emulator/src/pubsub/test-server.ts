/** For tests: a running server, the real client of it, and plain gRPC calls where a test needs the bare protocol. */
import type { TestContext } from 'node:test';
import { PubSub } from '@google-cloud/pubsub';
import {
  credentials,
  makeGenericClientConstructor,
  type Client,
  type ClientDuplexStream,
  type ServiceDefinition,
} from '@grpc/grpc-js';
import { systemClock, type Clock } from '../clock.ts';
import type { Faults } from '../faults/index.ts';
import type { Identity } from '../identity.ts';
import type { ManualClock } from '../manual-clock.ts';
import { until } from '../until.ts';
import { startPubsub, type RunningPubsub } from './index.ts';
import { pubsubServiceDefinitions } from './protos.ts';
import type { ReceivedMessage, StreamingPullRequest, StreamingPullResponse } from './wire.ts';

export { until };

/** A request with any of its fields; the proto loader checks them. */
type Fields = Readonly<Record<string, unknown>>;
type Answer = Record<string, unknown> & { receivedMessages: ReceivedMessage[]; messageIds: string[] };
type Unary = (request: Fields, callback: (error: Error | null, answer: Answer) => void) => { cancel(): void };
export type Stream = ClientDuplexStream<Partial<StreamingPullRequest>, StreamingPullResponse>;

export type TestServer = Readonly<{
  server: RunningPubsub;
  pubsub: PubSub;
  log: string[];
  /** A unary method of any of the services by its name. */
  call(method: string, request: Fields): Promise<Answer>;
  cancellable(method: string, request: Fields): Readonly<{ answer: Promise<Answer>; cancel(): void }>;
  stream(): Stream;
  /** Creates topic `t` and subscription `s` (ids of three characters and more) with further options. */
  create(topic: string, subscription: string, options?: Fields): Promise<void>;
  publish(topic: string, ...messages: readonly Fields[]): Promise<string[]>;
  pull(subscription: string, maxMessages?: number): Promise<ReceivedMessage[]>;
  ack(subscription: string, ...received: readonly ReceivedMessage[]): Promise<void>;
  /** Resolves when the nacks have taken effect, on a manual clock 50 ms later. */
  nack(subscription: string, ...received: readonly ReceivedMessage[]): Promise<void>;
}>;

export const topicName = (id: string): string => `projects/test-project/topics/${id}`;
export const subscriptionName = (id: string): string => `projects/test-project/subscriptions/${id}`;
export const text = ({ message }: ReceivedMessage): string => message.data.toString();
export const texts = (received: readonly ReceivedMessage[]): string => received.map(text).join();

export async function testServer(
  t: TestContext,
  clock: Clock = systemClock(),
  identity?: Identity,
  faults?: Faults,
): Promise<TestServer> {
  // Otherwise the client looks for a machine of Google's to run on, and warns that there is none.
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const log: string[] = [];
  const server = await startPubsub({
    clock,
    log: (line) => log.push(line),
    ...(identity && { identity }),
    ...(faults && { faults }),
  });
  const pubsub = new PubSub({ apiEndpoint: server.address, projectId: 'test-project' });
  const definitions = Object.values(pubsubServiceDefinitions());
  const clients = new Map<ServiceDefinition, Client>();
  for (const definition of definitions) {
    const Generic = makeGenericClientConstructor(definition, 'PubSub');
    clients.set(
      definition,
      new Generic(server.address, credentials.createInsecure(), { 'grpc.max_receive_message_length': -1 }),
    );
  }
  t.after(async () => {
    for (const client of clients.values()) client.close();
    await pubsub.close();
    await server.close();
  });
  const methodOf = (name: string): unknown => {
    const definition = definitions.find((each) => name in each);
    const client = (definition && clients.get(definition)) as unknown as Record<
      string,
      (...args: unknown[]) => unknown
    >;
    return client[name]?.bind(client);
  };
  const cancellable: TestServer['cancellable'] = (method, request) => {
    let cancel = (): void => {};
    const answer = new Promise<Answer>((resolve, reject) => {
      const call = (methodOf(method) as Unary)(request, (error, value) =>
        error === null ? resolve(value) : reject(error),
      );
      cancel = () => call.cancel();
    });
    return { answer, cancel };
  };
  const call: TestServer['call'] = (method, request) => cancellable(method, request).answer;
  const settle = async (
    method: string,
    id: string,
    received: readonly ReceivedMessage[],
    rest: Fields = {},
  ) => {
    const ackIds = received.map(({ ackId }) => ackId);
    await call(method, { subscription: subscriptionName(id), ackIds, ...rest });
  };
  return {
    server,
    pubsub,
    log,
    call,
    cancellable,
    stream: () => (methodOf('StreamingPull') as () => Stream)(),
    async create(topic, subscription, options = {}) {
      await call('CreateTopic', { name: topicName(topic) }).catch(() => {});
      await call('CreateSubscription', {
        name: subscriptionName(subscription),
        topic: topicName(topic),
        ...options,
      });
    },
    publish: async (topic, ...messages) =>
      (await call('Publish', { topic: topicName(topic), messages })).messageIds,
    pull: async (subscription, maxMessages = 100) =>
      (
        await call('Pull', {
          subscription: subscriptionName(subscription),
          maxMessages,
          returnImmediately: true,
        })
      ).receivedMessages,
    ack: (subscription, ...received) => settle('Acknowledge', subscription, received),
    async nack(subscription, ...received) {
      await settle('ModifyAckDeadline', subscription, received, { ackDeadlineSeconds: 0 });
      if (isManual(clock) && server.inFlight() > 0) clock.advance(50);
      else await until(() => server.inFlight() === 0);
    },
  };
}

const isManual = (clock: Clock): clock is ManualClock => 'timers' in clock;
