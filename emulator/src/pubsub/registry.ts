/**
 * All topics and subscriptions, in memory. A message published to a topic is copied to each subscription that
 * exists at that moment; a topic without subscriptions keeps nothing. A subscription outlives its topic.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { Identity } from '../identity.ts';
import { ackIds } from './ack-ids.ts';
import type { Entry } from './backlog.ts';
import { deadLetter } from './dead-letter.ts';
import { createDelivery } from './delivery.ts';
import { parseFilter } from './filter.ts';
import { messageIds } from './message-ids.ts';
import { alreadyExists, DELETED_TOPIC, refuseMissing, resourceNotFound } from './names.ts';
import { isDetached, notPullable } from './pull.ts';
import { startPush, type Push } from './push.ts';
import { createSnapshots, type Snapshots } from './snapshots.ts';
import { retained, store, type Retained, type Stored } from './stored.ts';
import { endCalls, type SubscriptionState } from './subscription-state.ts';
import { durationMs, type PubsubMessage, type Subscription, type Topic } from './wire.ts';

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
  /** Drops the backlog and ends deliveries for good; the topic no longer knows the subscription. */
  detachSubscription(name: string): void;
  /** What the topic itself retains: nothing once it is deleted. */
  retained(topic: string): readonly Stored[];
  snapshots: Snapshots;
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

type TopicState = { topic: Topic; readonly subscriptions: Set<Held>; readonly log: Retained };
type Held = SubscriptionState & { current: Subscription; push: Push | undefined };

export function createRegistry(
  clock: Clock,
  log: (line: string) => void,
  /** Signs the tokens of authenticated pushes. */
  identity?: Identity,
): Registry {
  const topics = new Map<string, TopicState>();
  const snapshots = createSnapshots(clock.now);
  const subscriptions = new Map<string, Held>();
  const nextMessageId = messageIds(clock);
  const run = randomBytes(4).toString('hex');
  let serial = 0;

  const topicState = (name: string): TopicState => {
    return topics.get(name) ?? refuseMissing('topics', name);
  };
  const held = (name: string): Held => {
    return subscriptions.get(name) ?? refuseMissing('subscriptions', name);
  };
  const topicRetentionMs = (name: string): number => {
    const duration = topics.get(name)?.topic.messageRetentionDuration ?? null;
    return duration === null ? 0 : durationMs(duration);
  };
  const publish = (name: string, messages: readonly PubsubMessage[]): readonly string[] => {
    const { subscriptions: targets, log } = topicState(name);
    const stored = store(messages, clock.now(), nextMessageId);
    for (const one of stored) log.add(one);
    snapshots.published(name, stored);
    for (const { delivery, matches } of targets) {
      for (const one of stored) {
        // What does not match counts as acknowledged: it is never in the backlog.
        if (matches(one.message.attributes)) delivery.enqueue(one);
      }
      delivery.dispatch();
    }
    return stored.map(({ message }) => message.messageId);
  };
  const create = (config: Subscription): Held => {
    const changing: Pick<Held, 'current' | 'push'> = { current: config, push: undefined };
    const current = (): Subscription => changing.current;
    const toDeadLetters = (entry: Entry): boolean => {
      const { name, deadLetterPolicy } = current();
      const target = deadLetterPolicy?.deadLetterTopic ?? '';
      if (!topics.has(target)) {
        log(`dead-letter topic ${target} does not exist: ${name} keeps the message`);
        return false;
      }
      publish(target, [deadLetter(entry, name)]);
      return true;
    };
    // What the topic retains for longer can be sought, so the subscription must not drop it earlier.
    const retentionMs = (): number => {
      const { messageRetentionDuration, topic } = current();
      const own = messageRetentionDuration === null ? Infinity : durationMs(messageRetentionDuration);
      return Math.max(own, topicRetentionMs(topic));
    };
    const delivery = createDelivery(clock, current, ackIds(run, serial++), toDeadLetters, retentionMs);
    const pushing = (): number => changing.push?.inFlight() ?? 0;
    const matches = parseFilter(config.filter);
    return Object.assign(changing, { config: current, delivery, matches, pushing, open: new Map() });
  };
  const setPush = (state: Held): void => {
    state.push?.stop();
    const { detached } = state.current;
    const pushConfig = detached ? null : state.current.pushConfig;
    state.push =
      pushConfig === null
        ? undefined
        : startPush(clock, state.config, pushConfig, state.delivery, log, identity);
  };
  const remove = (state: Held, error: Error): void => {
    endCalls(state, error);
    state.push?.abort();
    state.delivery.close();
  };

  return {
    signs: identity !== undefined,
    createTopic(topic) {
      if (topics.has(topic.name)) throw alreadyExists(topic.name);
      const log = retained(clock.now, () => topicRetentionMs(topic.name));
      topics.set(topic.name, { topic, subscriptions: new Set(), log });
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
      snapshots.topicDeleted(name);
    },
    subscription: held,
    deleteSubscription(name) {
      const state = held(name);
      topics.get(state.current.topic)?.subscriptions.delete(state);
      subscriptions.delete(name);
      remove(state, resourceNotFound(name));
    },
    detachSubscription(name) {
      const state = held(name);
      topics.get(state.current.topic)?.subscriptions.delete(state);
      state.current = { ...state.current, detached: true, retainAckedMessages: false };
      endCalls(state, isDetached());
      state.push?.abort();
      state.push = undefined;
      state.delivery.restart([], []);
    },
    retained: (name) => topics.get(name)?.log.all() ?? [],
    snapshots,
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
      if (config.pushConfig !== null) endCalls(state, notPullable());
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
