/**
 * What a case has in its hands: a server, the real client of it, plain gRPC calls, and time. The embedded server is on a
 * clock that runs with real time and that `pass` moves; Google's emulator is asked in a project of the case's own, and `pass` waits.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { PubSub } from '@google-cloud/pubsub';
import { identity } from '../../identity.ts';
import { manualClock } from '../../manual-clock.ts';
import { startPubsub } from '../../pubsub/index.ts';
import type { ReceivedMessage } from '../../pubsub/wire.ts';
import type { World } from '../case.ts';
import { connect, type Calls } from './calls.ts';
import { startEndpoint, type Answering, type Endpoint } from './endpoint.ts';

/** A request with any of its fields; the proto loader checks them. */
export type Fields = Readonly<Record<string, unknown>>;
type Jwks = Readonly<{ keys: readonly object[] }>;

export type PubsubWorld = World &
  Calls &
  Readonly<{
    /** The real client. */
    pubsub: PubSub;
    project: string;
    topic(id: string): string;
    subscription(id: string): string;
    snapshot(id: string): string;
    /** Creates the topic unless it exists, and the subscription to it. Ids have three characters and more. */
    create(topic: string, subscription: string, options?: Fields): Promise<void>;
    /** One request; a string is a message of these data. Returns the message IDs. */
    publish(topic: string, ...messages: readonly (string | Fields)[]): Promise<string[]>;
    /** What can be had at once. */
    pull(subscription: string, maxMessages?: number): Promise<ReceivedMessage[]>;
    /** Pulls until so many have come, or nothing more comes in 120 pulls. */
    receive(subscription: string, count: number): Promise<ReceivedMessage[]>;
    ack(subscription: string, ...received: readonly ReceivedMessage[]): Promise<void>;
    modify(subscription: string, seconds: number, ...received: readonly ReceivedMessage[]): Promise<void>;
    nack(subscription: string, ...received: readonly ReceivedMessage[]): Promise<void>;
    /** Milliseconds since the epoch, on the server's clock. */
    now(): number;
    /** Lets the server's time go on. */
    pass(milliseconds: number): Promise<void>;
    /** Something that pushes go to; it acknowledges with 204 unless the case says otherwise. */
    endpoint(answer?: Answering): Promise<Endpoint>;
    /** The public keys of push tokens. */
    keys(): Jwks;
  }>;

/** Of pulls that find nothing, for what does not depend on the server's clock: a process that gets no time makes none. */
const LOOKS = 120;
const LOOK_EVERY_MS = 25;
const TICK_MS = 10;
/** At most, in one tick: time in which this process got no processor is not its clients'. */
const LONGEST_TICK_MS = 20;

export async function embeddedWorld(): Promise<PubsubWorld> {
  // Google's emulator knows no time but the real one, so that both begin now.
  const clock = manualClock(Date.now());
  let last = Date.now();
  const passing = setInterval(() => {
    const now = Date.now();
    clock.advance(Math.min(Math.max(now - last, 0), LONGEST_TICK_MS));
    last = now;
  }, TICK_MS);
  const signer = identity(clock);
  const server = await startPubsub({ clock, identity: signer });
  const pass = async (milliseconds: number): Promise<void> => {
    clock.advance(milliseconds);
    // What fell due may have started a request.
    await wait(5);
  };
  const time = { now: clock.now, pass, keys: () => signer.jwks() };
  return world(server.address, 'test-project', time, () => {
    clearInterval(passing);
    return server.close();
  });
}

export async function officialWorld(address: string, project: string): Promise<PubsubWorld> {
  const time = {
    now: Date.now,
    pass: (milliseconds: number) => wait(milliseconds),
    keys: () => ({ keys: [] }),
  };
  const made = world(address, project, time, async () => {
    // It would push to endpoints that are gone, for ever.
    const { subscriptions } = await made.call('ListSubscriptions', { project: `projects/${project}` });
    for (const { name } of subscriptions as readonly { name: string }[]) {
      await made.call('DeleteSubscription', { subscription: name }).catch(() => {});
    }
  });
  return made;
}

function world(
  address: string,
  project: string,
  time: Pick<PubsubWorld, 'now' | 'pass' | 'keys'>,
  end: () => Promise<void>,
): PubsubWorld {
  const { close, ...connected } = connect(address, project);
  const { call } = connected;
  const endpoints: Endpoint[] = [];
  const name = (kind: string) => (id: string) => `projects/${project}/${kind}/${id}`;
  const [topic, subscription, snapshot] = [name('topics'), name('subscriptions'), name('snapshots')];
  const pull = async (id: string, maxMessages = 100): Promise<ReceivedMessage[]> => {
    const request = { subscription: subscription(id), maxMessages, returnImmediately: true };
    return (await call('Pull', request))['receivedMessages'] as ReceivedMessage[];
  };
  const modify: PubsubWorld['modify'] = async (id, ackDeadlineSeconds, ...received) => {
    const ackIds = received.map(({ ackId }) => ackId);
    await call('ModifyAckDeadline', { subscription: subscription(id), ackIds, ackDeadlineSeconds });
  };
  return {
    ...connected,
    ...time,
    project,
    topic,
    subscription,
    snapshot,
    async create(topicId, id, options = {}) {
      await call('CreateTopic', { name: topic(topicId) }).catch((error: Error & { code?: number }) => {
        if (error.code !== ALREADY_EXISTS) throw error;
      });
      await call('CreateSubscription', { name: subscription(id), topic: topic(topicId), ...options });
    },
    async publish(id, ...messages) {
      const built = messages.map((each) => (typeof each === 'string' ? { data: Buffer.from(each) } : each));
      return (await call('Publish', { topic: topic(id), messages: built }))['messageIds'] as string[];
    },
    pull,
    async receive(id, count) {
      const all: ReceivedMessage[] = [];
      for (let looks = 0; all.length < count && looks < LOOKS; ) {
        const some = await pull(id, count - all.length);
        all.push(...some);
        if (some.length > 0) continue;
        looks += 1;
        await wait(LOOK_EVERY_MS);
      }
      return all;
    },
    async ack(id, ...received) {
      const ackIds = received.map(({ ackId }) => ackId);
      await call('Acknowledge', { subscription: subscription(id), ackIds });
    },
    modify,
    nack: (id, ...received) => modify(id, 0, ...received),
    async endpoint(answer) {
      const made = await startEndpoint(answer);
      endpoints.push(made);
      return made;
    },
    async close() {
      await end();
      await Promise.all(endpoints.map((each) => each.close()));
      await close();
    },
  };
}

const ALREADY_EXISTS = 6;

export const text = ({ message }: ReceivedMessage): string => message.data.toString();
export const texts = (received: readonly ReceivedMessage[]): string => received.map(text).join();
export type { ReceivedMessage };
