/**
 * The state of the Pub/Sub server as plain JSON data, and how it is put in place. Resources have Google's JSON form; what
 * is empty, zero or false may be left out, and `{}` is a server that holds nothing.
 *
 *     topics[]          Topic, and `retained`: IDs of the messages that the topic retains
 *     subscriptions[]   Subscription, and
 *       unacknowledged[]  { messageId, failures, countedFailures } in the order in which they wait. Failures are nacks and
 *                         expired deadlines; those that count are the ones under a dead-letter policy
 *       idle              for how long it had not been used, as a duration; only where it can expire. The time between
 *                         saving and loading does not count, so that a state that is kept in a file does not wear out
 *       acknowledged      IDs of the acknowledged messages that it retains
 *     schemas[]         { name, revisions }: each a Schema without its name, the oldest first
 *     snapshots[]       Snapshot, and `messages`: IDs
 *     … each of these but messages may have `iamPolicy`, a google.iam.v1.Policy
 *     messages[]        PubsubMessage: data in base64, publish time as RFC 3339. One that nothing names is not kept
 *     nextMessageId     no message ID below it comes again
 *
 * A topic that was deleted is `_deleted-topic_`, as in the service. Limits of publish requests do not hold for messages
 * here: a dead letter is larger than what was published.
 *
 * Leases and backoffs are not kept. What was delivered and not settled waits again, in its place in the order, and that
 * delivery does not count as failed: it was neither nacked nor did its deadline pass, so that no restart takes a message
 * nearer to a dead-letter topic. Ack IDs of before are stale.
 */
import { status } from '@grpc/grpc-js';
import { StatusError } from '../grpc-server.ts';
import { meaningful, writeDuration, writeMs, writeTimestamp } from '../saved-json.ts';
import { savePolicy } from '../iam/saved-policy.ts';
import type { Entry } from './backlog.ts';
import { saveIngestion } from './ingestion.ts';
import type { Registry } from './registry.ts';
import { parsePubsub } from './saved-parse.ts';
import type { Stored } from './stored.ts';
import { milliseconds, timestampMs, type Duration, type PushConfig, type Subscription } from './wire.ts';

export function savePubsub(registry: Registry): object {
  const messages = new Map<string, Stored>();
  const idsOf = (all: readonly Stored[]): readonly string[] =>
    all.map((stored) => {
      messages.set(stored.message.messageId, stored);
      return stored.message.messageId;
    });
  const policyOf = (name: string): object | undefined =>
    savePolicy(registry.policies.find(registry.resource(name).holder));
  const waiting = ({ message: { messageId }, failures, countedFailures }: Entry): object =>
    meaningful({ messageId, failures, countedFailures });
  const topics = [...registry.topicNames()].map((name) => {
    const { labels, messageRetentionDuration, schemaSettings, ...kept } = registry.topic(name);
    return meaningful({
      name,
      labels: filled(labels),
      messageRetentionDuration: text(messageRetentionDuration),
      schemaSettings: schemaSettings && meaningful(schemaSettings),
      messageStoragePolicy: kept.messageStoragePolicy && meaningful(kept.messageStoragePolicy),
      kmsKeyName: kept.kmsKeyName,
      ingestionDataSourceSettings: saveIngestion(kept.ingestionDataSourceSettings),
      retained: idsOf(registry.retained(name)),
      iamPolicy: policyOf(name),
    });
  });
  const subscriptions = [...registry.states()].map(({ config, delivery, expiration }) => {
    const unacked = delivery.unacked();
    idsOf(unacked);
    return {
      ...saveSubscription(config()),
      ...meaningful({ unacknowledged: unacked.map(waiting), acknowledged: idsOf(delivery.acked()) }),
      ...meaningful({ idle: idle(expiration.idleMs()), iamPolicy: policyOf(config().name) }),
    };
  });
  const schemas = [...registry.schemas.names()].map((name) => ({
    name,
    ...meaningful({ iamPolicy: policyOf(name) }),
    revisions: registry.schemas.revisions(name).map(({ schema }) => {
      const { revisionId, type, definition, revisionCreateTime } = schema;
      return { revisionId, type, definition, revisionCreateTime: writeTimestamp(revisionCreateTime) };
    }),
  }));
  const snapshots = registry.snapshots.list().map(({ name, topic, labels, expireTime }) =>
    meaningful({
      name,
      topic,
      labels: filled(labels),
      expireTime: writeMs(timestampMs(expireTime)),
      messages: idsOf(registry.snapshots.messages(name)),
      iamPolicy: policyOf(name),
    }),
  );
  return {
    topics,
    subscriptions,
    schemas,
    snapshots,
    messages: [...messages.values()].map(saveMessage),
    nextMessageId: registry.messageIds.upcoming(),
  };
}

/**
 * Reads what was saved; throws an error of one line. What it gives replaces all that the server holds: open calls end with
 * UNAVAILABLE, as at a restart, and pushes in flight settle nothing; those of loaded push subscriptions begin.
 */
export function preparePubsub(registry: Registry, saved: unknown): () => void {
  const parsed = parsePubsub(saved, registry.signs);
  return () => replacePubsub(registry, parsed);
}

function replacePubsub(
  registry: Registry,
  { topics, subscriptions, schemas, snapshots, policies, nextMessageId }: ReturnType<typeof parsePubsub>,
): void {
  registry.clear(new StatusError(status.UNAVAILABLE, 'The server begins anew with another state.'));
  registry.messageIds.startAt(nextMessageId);
  for (const { name, revisions } of schemas) registry.schemas.restore(name, revisions);
  for (const { topic, retained } of topics) registry.createTopic(topic, retained);
  for (const { snapshot, messages } of snapshots) registry.snapshots.restore(snapshot, messages);
  for (const { config, unacked, acked, failuresOf, idleMs } of subscriptions) {
    registry.restoreSubscription(config, unacked, acked, failuresOf, idleMs);
  }
  for (const { name, policy } of policies) {
    // A snapshot may have expired since.
    if (registry.exists(name)) registry.policies.restore(registry.resource(name).holder, policy);
  }
}

function saveSubscription(config: Subscription): object {
  const { pushConfig, deadLetterPolicy, retryPolicy, expirationPolicy } = config;
  return meaningful({
    name: config.name,
    topic: config.topic,
    pushConfig: pushConfig && savePushConfig(pushConfig),
    ackDeadlineSeconds: config.ackDeadlineSeconds,
    messageRetentionDuration: text(config.messageRetentionDuration),
    labels: filled(config.labels),
    enableMessageOrdering: config.enableMessageOrdering,
    // Without a ttl it never expires, which is not the default.
    expirationPolicy: expirationPolicy && meaningful({ ttl: text(expirationPolicy.ttl) }),
    deadLetterPolicy,
    retryPolicy:
      retryPolicy &&
      meaningful({
        minimumBackoff: text(retryPolicy.minimumBackoff),
        maximumBackoff: text(retryPolicy.maximumBackoff),
      }),
    filter: config.filter,
    retainAckedMessages: config.retainAckedMessages,
    detached: config.detached,
    enableExactlyOnceDelivery: config.enableExactlyOnceDelivery,
  });
}

function savePushConfig({ pushEndpoint, attributes, oidcToken, ...form }: PushConfig): object {
  return meaningful({
    pushEndpoint,
    attributes: filled(attributes),
    oidcToken: oidcToken && meaningful(oidcToken),
    pubsubWrapper: form.pubsubWrapper && {},
    noWrapper: form.noWrapper && meaningful(form.noWrapper),
  });
}

function saveMessage({ message, publishTimeMs }: Stored): object {
  const { messageId, data, attributes, orderingKey } = message;
  return meaningful({
    messageId,
    publishTime: writeMs(publishTimeMs),
    data: data.toString('base64'),
    attributes: filled(attributes),
    orderingKey,
  });
}

const idle = (ms: number | undefined): string | null => (ms ? writeDuration(milliseconds(ms)) : null);

const text = (duration: Duration | null): string | null => duration && writeDuration(duration);

const filled = (map: Readonly<Record<string, string>>): object | null =>
  Object.keys(map).length > 0 ? map : null;
