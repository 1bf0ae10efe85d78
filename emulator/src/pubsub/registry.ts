/**
 * All topics and subscriptions, in memory. A message published to a topic is copied to each subscription that
 * exists at that moment; a topic without subscriptions keeps nothing. A subscription outlives its topic. One that has
 * expired is deleted before anything else is done with it.
 */
import { randomBytes } from 'node:crypto';
import { createPolicies, type Policies } from '../iam/policies.ts';
import type { Collection } from '../iam/roles.ts';
import { ackIds } from './ack-ids.ts';
import type { FailuresOf } from './backlog.ts';
import { dropHeld, holdSubscription, setPush, type Held, type HeldPorts } from './held-subscription.ts';
import { messageIds, type MessageIds } from './message-ids.ts';
import { alreadyExists, DELETED_TOPIC, refuseMissing, resourceNotFound } from './names.ts';
import { isDetached, notPullable } from './pull.ts';
import { createSchemas, type Schema, type Schemas } from './schemas/schemas.ts';
import { DELETED_REVISION, DELETED_SCHEMA } from './schemas/topic-schema.ts';
import { createSnapshots, type Snapshots } from './snapshots.ts';
import { retained, store, type Retained, type Stored } from './stored.ts';
import { endCalls, type SubscriptionState } from './subscription-state.ts';
import {
  durationMs,
  type Duration,
  type PubsubMessage,
  type SchemaSettings,
  type Subscription,
  type Topic,
} from './wire.ts';

export type Registry = Readonly<{
  /** Whether pushes can carry OIDC tokens. */
  signs: boolean;
  /** `retained`: what it has retained already. */
  createTopic(topic: Topic, retained?: readonly Stored[]): Topic;
  /** These throw NOT_FOUND, or INVALID_ARGUMENT for a name that cannot be. */
  topic(name: string): Topic;
  replaceTopic(topic: Topic): Topic;
  deleteTopic(name: string): void;
  subscription(name: string): SubscriptionState;
  /** Undefined where there is none. */
  find(name: string): SubscriptionState | undefined;
  deleteSubscription(name: string): void;
  /** Drops the backlog and ends deliveries for good; the topic no longer knows the subscription. */
  detachSubscription(name: string): void;
  /** What the topic itself is configured to retain: null once it is deleted. */
  topicRetention(topic: string): Duration | null;
  /** What the topic itself retains: nothing once it is deleted. */
  retained(topic: string): readonly Stored[];
  snapshots: Snapshots;
  /** Schemas and revisions are deleted by the two below, which tell the topics. */
  schemas: Omit<Schemas, 'remove' | 'removeRevision'>;
  deleteSchema(name: string): void;
  deleteSchemaRevision(reference: string): Schema;
  topicSubscriptions(topic: string): readonly string[];
  /** Nothing of it is delivered before `deliver` is called. */
  publish(topic: string, messages: readonly PubsubMessage[]): Published;
  messageIds: MessageIds;
  createSubscription(config: Subscription): Subscription;
  /** As it was saved, with what it had not acknowledged and what it retains of the rest. */
  restoreSubscription(
    config: Subscription,
    unacked: readonly Stored[],
    acked: readonly Stored[],
    failuresOf: FailuresOf,
    idleMs?: number,
  ): void;
  replaceSubscription(config: Subscription): Subscription;
  policies: Policies;
  /** What stands for a resource of any kind, for its policy. Throws as above. */
  resource(name: string): Readonly<{ collection: Collection; holder: object }>;
  /** Whether there is such a resource of any kind. */
  exists(name: string): boolean;
  topicNames(): Iterable<string>;
  subscriptionNames(): Iterable<string>;
  states(): Iterable<SubscriptionState>;
  /** Ends all open calls with the error, aborts pushes, stops all timers; holds nothing any more. */
  clear(error: Error): void;
}>;

/** The message IDs, and what delivers the messages to the consumers that wait for them. */
type Published = Readonly<{ messageIds: readonly string[]; deliver(): void }>;

type TopicState = { topic: Topic; readonly subscriptions: Set<Held>; readonly log: Retained };

type Settings = Pick<HeldPorts, 'clock'> &
  Partial<Pick<HeldPorts, 'log' | 'identity' | 'faults' | 'remoteTargets'>>;

export function createRegistry({
  clock,
  log = () => {},
  identity,
  faults,
  remoteTargets = false,
}: Settings): Registry {
  const topics = new Map<string, TopicState>();
  const snapshots = createSnapshots(clock.now);
  const schemas = createSchemas(clock.now);
  const subscriptions = new Map<string, Held>();
  const ids = messageIds(clock);
  const run = randomBytes(4).toString('hex');
  let serial = 0;

  const topicState = (name: string): TopicState => topics.get(name) ?? refuseMissing('topics', name);
  const remove = (state: Held): void => {
    const { name, topic } = state.current;
    topics.get(topic)?.subscriptions.delete(state);
    subscriptions.delete(name);
    dropHeld(state, resourceNotFound(name));
  };
  const lives = (state: Held): boolean => {
    // One that is no longer held has nothing left that could expire.
    if (!state.expiration.isOver() || subscriptions.get(state.current.name) !== state) return true;
    remove(state);
    log(`${state.current.name} has expired: it was not used for the time of its expiration policy`);
    return false;
  };
  function* living(): Iterable<Held> {
    for (const state of subscriptions.values()) if (lives(state)) yield state;
  }
  const find = (name: string): Held | undefined => {
    const state = subscriptions.get(name);
    return state !== undefined && lives(state) ? state : undefined;
  };
  const held = (name: string): Held => find(name) ?? refuseMissing('subscriptions', name);
  const topicRetention = (name: string): Duration | null =>
    topics.get(name)?.topic.messageRetentionDuration ?? null;
  const topicRetentionMs = (name: string): number => {
    const duration = topicRetention(name);
    return duration === null ? 0 : durationMs(duration);
  };
  const publish = (name: string, messages: readonly PubsubMessage[]): Published => {
    const { subscriptions: targets, log } = topicState(name);
    const stored = store(messages, clock.now(), ids.next);
    for (const one of stored) log.add(one);
    snapshots.published(name, stored);
    const living = [...targets].filter(lives);
    for (const { delivery, matches } of living) {
      for (const one of stored) {
        // What does not match counts as acknowledged: it is never in the backlog.
        if (matches(one.message.attributes)) delivery.enqueue(one);
      }
    }
    return {
      messageIds: stored.map(({ message }) => message.messageId),
      deliver: () => {
        for (const { delivery } of living) delivery.admit();
      },
    };
  };
  const ports: HeldPorts = {
    clock,
    log,
    identity,
    faults,
    remoteTargets,
    topics,
    publish,
    topicRetentionMs,
    lives,
  };
  const hold = (config: Subscription, idleMs = 0): Held => {
    const state = holdSubscription(ports, config, ackIds(run, serial++), idleMs);
    subscriptions.set(config.name, state);
    return state;
  };

  return {
    signs: identity !== undefined,
    createTopic(topic, retainedBefore = []) {
      if (topics.has(topic.name)) throw alreadyExists(topic.name);
      const log = retained(clock.now, () => topicRetentionMs(topic.name));
      topics.set(topic.name, { topic, subscriptions: new Set(), log });
      log.replace(retainedBefore);
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
    find,
    deleteSubscription: (name) => remove(held(name)),
    detachSubscription(name) {
      const state = held(name);
      topics.get(state.current.topic)?.subscriptions.delete(state);
      state.current = { ...state.current, detached: true, retainAckedMessages: false };
      endCalls(state, isDetached());
      state.push?.abort();
      state.push = undefined;
      state.delivery.restart([], []);
    },
    topicRetention,
    retained: (name) => topics.get(name)?.log.all() ?? [],
    snapshots,
    schemas,
    deleteSchema(name) {
      schemas.remove(name);
      for (const state of topics.values()) {
        const { schemaSettings } = state.topic;
        if (schemaSettings?.schema !== name) continue;
        state.topic = { ...state.topic, schemaSettings: { ...schemaSettings, schema: DELETED_SCHEMA } };
      }
    },
    deleteSchemaRevision(reference) {
      const gone = schemas.removeRevision(reference);
      const left = (id: string): string => (id === gone.revisionId ? DELETED_REVISION : id);
      for (const state of topics.values()) {
        const settings = state.topic.schemaSettings;
        if (settings?.schema !== gone.name) continue;
        const [firstRevisionId, lastRevisionId] = [settings.firstRevisionId, settings.lastRevisionId].map(
          left,
        );
        const schemaSettings = { ...settings, firstRevisionId, lastRevisionId } as SchemaSettings;
        state.topic = { ...state.topic, schemaSettings };
      }
      return gone;
    },
    messageIds: ids,
    topicSubscriptions: (name) =>
      [...topicState(name).subscriptions].filter(lives).map(({ current }) => current.name),
    publish,
    createSubscription(config) {
      const target = topicState(config.topic);
      if (find(config.name) !== undefined) throw alreadyExists(config.name);
      const state = hold(config);
      target.subscriptions.add(state);
      setPush(ports, state);
      return config;
    },
    restoreSubscription(config, unacked, acked, failuresOf, idleMs) {
      const state = hold(config, idleMs);
      // A detached one goes on naming its topic, which does not know it any more.
      if (!config.detached) topics.get(config.topic)?.subscriptions.add(state);
      state.delivery.restart(unacked, acked, failuresOf);
      setPush(ports, state);
    },
    replaceSubscription(config) {
      const state = held(config.name);
      const pushChanged = state.current.pushConfig !== config.pushConfig;
      // By the policy of before: by a shorter one it might have expired.
      state.expiration.used();
      state.current = config;
      if (config.pushConfig !== null) endCalls(state, notPullable());
      if (pushChanged) setPush(ports, state);
      return config;
    },
    policies: createPolicies(clock.now),
    resource(name) {
      switch (name.split('/')[2]) {
        case 'subscriptions':
          return { collection: 'subscriptions', holder: held(name) };
        case 'snapshots':
          return { collection: 'snapshots', holder: snapshots.holder(name) };
        case 'schemas':
          return { collection: 'schemas', holder: schemas.holder(name) };
        case undefined:
        default:
          return { collection: 'topics', holder: topicState(name) };
      }
    },
    exists: (name) =>
      topics.has(name) ||
      find(name) !== undefined ||
      schemas.find(name) !== undefined ||
      snapshots.list().some((snapshot) => snapshot.name === name),
    topicNames: () => topics.keys(),
    subscriptionNames: () => [...living()].map(({ current }) => current.name),
    states: living,
    clear(error) {
      for (const state of subscriptions.values()) dropHeld(state, error);
      subscriptions.clear();
      topics.clear();
      snapshots.clear();
      schemas.clear();
    },
  };
}
