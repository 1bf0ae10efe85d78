/**
 * Reads the saved state of the Pub/Sub server (see saved.ts for its form), before anything of it takes effect.
 * Throws an error of one line that names the place for whatever the server could not have held.
 */
import type { Policy } from '../iam/policy.ts';
import { readPolicy } from '../iam/saved-policy.ts';
import { accepted, assertUnique, refused, SavedError, writeDuration } from '../saved-json.ts';
import type { FailuresOf } from './backlog.ts';
import { assertLabels } from './labels.ts';
import { assertName, DELETED_TOPIC } from './names.ts';
import { messageBytes } from './publish-limits.ts';
import type { Stored } from './stored.ts';
import { type MESSAGE, STATE } from './saved-shape.ts';
import { assertKnown, parseSchema, type ParsedSchema } from './schemas/saved-schemas.ts';
import { newSubscription } from './subscription-config.ts';
import { newTopic } from './topic-config.ts';
import {
  durationMs,
  timestampMs,
  type Duration,
  type Snapshot,
  type Subscription,
  type Topic,
} from './wire.ts';

export type ParsedPubsub = Readonly<{
  topics: readonly Readonly<{ topic: Topic; retained: readonly Stored[] }>[];
  subscriptions: readonly Readonly<{
    config: Subscription;
    unacked: readonly Stored[];
    acked: readonly Stored[];
    failuresOf: FailuresOf;
    idleMs: number;
  }>[];
  schemas: readonly ParsedSchema[];
  snapshots: readonly Readonly<{ snapshot: Snapshot; messages: readonly Stored[] }>[];
  policies: readonly Readonly<{ name: string; policy: Policy }>[];
  nextMessageId: string;
}>;

/** Any legal name will do where a topic is gone: the checks of a new subscription want one. */
const SOME_TOPIC = 'projects/p/topics/deleted';

/** `signs`: whether this server can sign the tokens of pushes. */
export function parsePubsub(saved: unknown, signs: boolean): ParsedPubsub {
  const state = STATE(saved, 'pubsub');
  for (const kind of ['topics', 'subscriptions', 'schemas', 'snapshots'] as const) {
    assertUnique<{ name: string }>(state[kind], `pubsub.${kind}`, '.name', ({ name }) => name);
  }
  assertUnique(state.messages, 'pubsub.messages', '.messageId', ({ messageId }) => messageId);

  const topicNames = new Set(state.topics.map(({ name }) => name));
  const messages = new Map(state.messages.map((message) => [message.messageId, storedOf(message)]));
  const find = (messageId: string, place: string): Stored => {
    const stored = messages.get(messageId);
    if (stored === undefined) throw refused(place, messageId, 'the ID of one of pubsub.messages');
    return stored;
  };
  const findAll = (names: readonly string[], place: string): readonly Stored[] => {
    assertUnique(names, place, '', (name) => name);
    return names.map((name, index) => find(name, `${place}[${index}]`));
  };
  const assertTopic = (topic: string, place: string): void => {
    if (topic === DELETED_TOPIC || topicNames.has(topic)) return;
    throw refused(`${place}.topic`, topic, `the name of one of pubsub.topics, ${DELETED_TOPIC}`);
  };

  const schemas = state.schemas.map((schema, index) => parseSchema(schema, `pubsub.schemas[${index}]`));
  const revisions = new Map(schemas.map(({ name, revisions }) => [name, revisions]));
  const topics = state.topics.map(({ retained, ...topic }, index) => {
    const place = `pubsub.topics[${index}]`;
    assertKnown(topic.schemaSettings, (name) => revisions.get(name), place);
    return {
      topic: accepted(place, () => newTopic(topic)),
      retained: findAll(retained, `${place}.retained`),
    };
  });
  const subscriptions = state.subscriptions.map(({ unacknowledged, acknowledged, idle, ...given }, index) => {
    const place = `pubsub.subscriptions[${index}]`;
    // A detached one may name a topic that was deleted since.
    if (!given.detached) assertTopic(given.topic, place);
    const config = subscriptionOf(given, place, signs);
    const held = `${place}.unacknowledged`;
    assertUnique(unacknowledged, held, '.messageId', ({ messageId }) => messageId);
    const failures = new Map(
      unacknowledged.map(({ messageId, ...known }, i) => [find(messageId, `${held}[${i}].messageId`), known]),
    );
    return {
      config,
      unacked: [...failures.keys()],
      acked: findAll(acknowledged, `${place}.acknowledged`),
      failuresOf: (stored: Stored) => failures.get(stored),
      idleMs: idleOf(idle, config, place),
    };
  });
  const snapshots = state.snapshots.map(({ messages: names, name, topic, labels, expireTime }, index) => {
    const snapshot = { name, topic, labels, expireTime };
    const place = `pubsub.snapshots[${index}]`;
    assertTopic(snapshot.topic, place);
    accepted(place, () => {
      assertName('snapshots', snapshot.name);
      assertLabels(snapshot.labels);
    });
    return { snapshot, messages: findAll(names, `${place}.messages`) };
  });
  const policies = (['topics', 'subscriptions', 'schemas', 'snapshots'] as const).flatMap((kind) =>
    state[kind].flatMap(({ name, iamPolicy }, index) => {
      const policy = readPolicy(iamPolicy, `pubsub.${kind}[${index}]`);
      return policy === undefined ? [] : [{ name, policy }];
    }),
  );
  return {
    topics,
    subscriptions,
    schemas,
    snapshots,
    policies,
    nextMessageId: nextId(state.nextMessageId, messages.keys()),
  };
}

function subscriptionOf(given: Subscription, place: string, signs: boolean): Subscription {
  if (given.pushConfig?.pubsubWrapper && given.pushConfig.noWrapper) {
    throw new SavedError(`${place}.pushConfig has pubsubWrapper and noWrapper; accepted: one of them`);
  }
  const { topic, detached } = given;
  const legal = topic === DELETED_TOPIC ? SOME_TOPIC : topic;
  const config = accepted(place, () => newSubscription({ ...given, topic: legal, detached: false }, signs));
  return { ...config, topic, detached };
}

function idleOf(idle: Duration | null, { expirationPolicy }: Subscription, place: string): number {
  const idleMs = idle === null ? 0 : durationMs(idle);
  const ttl = expirationPolicy?.ttl;
  if (idleMs >= 0 && (!ttl || idleMs < durationMs(ttl))) return idleMs;
  throw refused(`${place}.idle`, idle && writeDuration(idle), 'a duration below expirationPolicy.ttl');
}

function storedOf(given: ReturnType<typeof MESSAGE>): Stored {
  const { publishTime, ...message } = given;
  const stored = { ...message, publishTime };
  return { message: stored, publishTimeMs: timestampMs(publishTime), bytes: messageBytes(stored) };
}

/** Above all that are loaded. */
function nextId(saved: string, loaded: Iterable<string>): string {
  let next = BigInt(saved);
  for (const each of loaded) if (BigInt(each) >= next) next = BigInt(each) + 1n;
  return String(next);
}
