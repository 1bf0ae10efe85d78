/**
 * All topics and subscriptions, in memory. A message published to a topic is copied to each subscription that
 * exists at that moment; a topic without subscriptions keeps nothing. A subscription outlives its topic.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { Identity } from '../identity.ts';
import { ackIds } from './ack-ids.ts';
import { deadLetter } from './dead-letter.ts';
import { createDelivery, type Consumer, type Delivery } from './delivery.ts';
import { parseFilter, type Filter } from './filter.ts';
import { messageIds } from './message-ids.ts';
import { alreadyExists, DELETED_TOPIC, refuseMissing, resourceNotFound } from './names.ts';
import { notPullable } from './pull.ts';
import { messageBytes } from './publish-limits.ts';
import { startPush, type Push } from './push.ts';
import { timestamp, type PubsubMessage, type Subscription, type Topic } from './wire.ts';

export type SubscriptionState = Readonly<{
  config(): Subscription;
  delivery: Delivery;
  /** Pushes that are not answered yet. */
  pushing(): number;
  /** Open streams and waiting pulls, each with what ends it with an error. */
  open: Map<Consumer, (error: Error) => void>;
}>;

export type Registry = Readonly<{
  /** Whether pushes can carry OIDC tokens. */
  signs: boolean;
  createTopic(topic: Topic): Topic;
  /** These throw NOT_FOUND, or INVALID_ARGUMENT for a name that cannot be. */
  topic(name: string): Topic;
  replaceTopic(topic: Topic): Topic;
  deleteTopic(name: string): void;
  subscription(name: string): SubscriptionState;
  deleteSubscription(name: string): void;
  topicSubscriptions(topic: string): readonly string[];
  publish(topic: string, messages: readonly PubsubMessage[]): readonly string[];

  createSubscription(config: Subscription): Subscription;
  replaceSubscription(config: Subscription): Subscription;
  topicNames(): Iterable<string>;
  subscriptionNames(): Iterable<string>;
  states(): Iterable<SubscriptionState>;
  /** Ends all open calls with the error, aborts pushes, stops all timers. */
  close(error: Error): void;
}>;

type Held = SubscriptionState & { current: Subscription; push: Push | undefined; readonly matches: Filter };

export function createRegistry(
  clock: Clock,
  log: (line: string) => void,
  /** Signs the tokens of authenticated pushes. */
  identity?: Identity,
): Registry {
  const topics = new Map<string, { topic: Topic; subscriptions: Set<Held> }>();
  const subscriptions = new Map<string, Held>();
  const nextMessageId = messageIds(clock);
  const run = randomBytes(4).toString('hex');
  let serial = 0;

  const topicState = (name: string): { topic: Topic; subscriptions: Set<Held> } => {
    return topics.get(name) ?? refuseMissing('topics', name);
  };
  const held = (name: string): Held => {
    return subscriptions.get(name) ?? refuseMissing('subscriptions', name);
  };
  const publish = (name: string, messages: readonly PubsubMessage[]): readonly string[] => {
    const { subscriptions: targets } = topicState(name);
    const publishTimeMs = clock.now();
    const publishTime = timestamp(publishTimeMs);
    const stored = messages.map(({ data, attributes, orderingKey }) => {
      // Copied, because the bytes are a window on the whole request, which they would keep in memory.
      const message = {
        data: Buffer.from(data),
        attributes,
        messageId: nextMessageId(),
        publishTime,
        orderingKey,
      };
      return { message, bytes: messageBytes(message) };
    });
    for (const { delivery, matches } of targets) {
      for (const { message, bytes } of stored) {
        // What does not match counts as acknowledged: it is never in the backlog.
        if (matches(message.attributes)) delivery.enqueue(message, publishTimeMs, bytes);
      }
      delivery.dispatch();
    }
    return stored.map(({ message }) => message.messageId);
  };
  const create = (config: Subscription): Held => {
    const changing: Pick<Held, 'current' | 'push'> = { current: config, push: undefined };
    const current = (): Subscription => changing.current;
    const delivery = createDelivery(clock, current, ackIds(run, serial++), (entry) => {
      const { name, deadLetterPolicy } = current();
      const target = deadLetterPolicy?.deadLetterTopic ?? '';
      if (!topics.has(target)) {
        log(`dead-letter topic ${target} does not exist: ${name} keeps the message`);
        return false;
      }
      publish(target, [deadLetter(entry, name)]);
      return true;
    });
    const pushing = (): number => changing.push?.inFlight() ?? 0;
    const matches = parseFilter(config.filter);
    return Object.assign(changing, { config: current, delivery, matches, pushing, open: new Map() });
  };
  const setPush = (state: Held): void => {
    state.push?.stop();
    const { pushConfig } = state.current;
    state.push =
      pushConfig === null
        ? undefined
        : startPush(clock, state.config, pushConfig, state.delivery, log, identity);
  };
  const end = (state: Held, error: Error): void => {
    for (const [consumer, abort] of state.open) {
      state.delivery.leave(consumer);
      abort(error);
    }
    state.open.clear();
  };
  const remove = (state: Held, error: Error): void => {
    end(state, error);
    state.push?.abort();
    state.delivery.close();
  };

  return {
    signs: identity !== undefined,
    createTopic(topic) {
      if (topics.has(topic.name)) throw alreadyExists(topic.name);
      topics.set(topic.name, { topic, subscriptions: new Set() });
      return topic;
    },
    topic: (name) => topicState(name).topic,
    replaceTopic(topic) {
      topicState(topic.name).topic = topic;
      return topic;
    },
    deleteTopic(name) {
      for (const state of topicState(name).subscriptions) {
        state.current = { ...state.current, topic: DELETED_TOPIC };
      }
      topics.delete(name);
    },
    subscription: held,
    deleteSubscription(name) {
      const state = held(name);
      topics.get(state.current.topic)?.subscriptions.delete(state);
      subscriptions.delete(name);
      remove(state, resourceNotFound(name));
    },
    topicSubscriptions: (name) => [...topicState(name).subscriptions].map(({ current }) => current.name),
    publish,
    createSubscription(config) {
      const target = topicState(config.topic);
      if (subscriptions.has(config.name)) throw alreadyExists(config.name);
      const state = create(config);
      subscriptions.set(config.name, state);
      target.subscriptions.add(state);
      setPush(state);
      return config;
    },
    replaceSubscription(config) {
      const state = held(config.name);
      const pushChanged = state.current.pushConfig !== config.pushConfig;
      state.current = config;
      if (config.pushConfig !== null) end(state, notPullable());
      if (pushChanged) setPush(state);
      return config;
    },
    topicNames: () => topics.keys(),
    subscriptionNames: () => subscriptions.keys(),
    states: () => subscriptions.values(),
    close(error) {
      for (const state of subscriptions.values()) remove(state, error);
    },
  };
}
