/** The methods of google.pubsub.v1.Publisher that this server carries out. */
import type { ServerUnaryCall, UntypedServiceImplementation } from '@grpc/grpc-js';
import type { AfterReply } from '../after-reply.ts';
import { invalidArgument } from '../grpc-server.ts';
import { unary, type Log } from './methods.ts';
import { projectPrefix } from './names.ts';
import { page } from './paging.ts';
import { assertPublishable } from './publish-limits.ts';
import type { Registry } from './registry.ts';
import { assertThere, stamped } from './schemas/topic-schema.ts';
import { changedTopic, newTopic } from './topic-config.ts';
import type { FieldMask, Paging, PubsubMessage, Topic } from './wire.ts';

type ByTopic = Readonly<{ topic: string }>;
type Publish = ByTopic & Readonly<{ messages: readonly PubsubMessage[] }>;

export function publisherMethods(
  registry: Registry,
  log: Log,
  afterReply: AfterReply,
): UntypedServiceImplementation {
  return {
    CreateTopic: unary(log, (request: Topic) => {
      const topic = newTopic(request);
      assertThere(registry.schemas, topic.schemaSettings);
      const made = registry.createTopic(topic);
      logIngestion(made, log);
      return made;
    }),
    GetTopic: unary(log, ({ topic }: ByTopic) => registry.topic(topic)),
    UpdateTopic: unary(
      log,
      ({ topic, updateMask }: { topic: Topic | null; updateMask: FieldMask | null }) => {
        if (topic === null) throw invalidArgument('The UpdateTopicRequest names no topic.');
        const current = registry.topic(topic.name);
        const changed = changedTopic(current, topic, updateMask);
        if (changed.schemaSettings !== current.schemaSettings) {
          assertThere(registry.schemas, changed.schemaSettings);
        }
        if (changed.ingestionDataSourceSettings !== current.ingestionDataSourceSettings) {
          logIngestion(changed, log);
        }
        return registry.replaceTopic(changed);
      },
    ),
    DeleteTopic: unary(log, ({ topic }: ByTopic) => {
      registry.deleteTopic(topic);
      return {};
    }),
    ListTopics: unary(log, (request: Paging & { project: string }) => {
      const prefix = projectPrefix(request.project, 'topics');
      const own = [...registry.topicNames()].filter((name) => name.startsWith(prefix));
      const { names, nextPageToken } = page(own, request);
      return { topics: names.map((name) => registry.topic(name)), nextPageToken };
    }),
    ListTopicSubscriptions: unary(log, (request: Paging & ByTopic) => {
      const { names, nextPageToken } = page(registry.topicSubscriptions(request.topic), request);
      return { subscriptions: names, nextPageToken };
    }),
    ListTopicSnapshots: unary(log, (request: Paging & ByTopic) => {
      registry.topic(request.topic);
      const own = registry.snapshots.list().filter(({ topic }) => topic === request.topic);
      const { names, nextPageToken } = page(
        own.map(({ name }) => name),
        request,
      );
      return { snapshots: names, nextPageToken };
    }),
    DetachSubscription: unary(log, ({ subscription }: Readonly<{ subscription: string }>) => {
      registry.detachSubscription(subscription);
      return {};
    }),
    Publish: unary(log, ({ topic, messages }: Publish, call: ServerUnaryCall<Publish, unknown>) => {
      const { schemaSettings } = registry.topic(topic);
      assertPublishable(messages);
      const { messageIds, deliver } = registry.publish(
        topic,
        stamped(registry.schemas, schemaSettings, messages),
      );
      // Programs compare what they receive with the ID in the reply: the message must not come before it.
      afterReply(call.getPeer(), deliver);
      return { messageIds };
    }),
  };
}

function logIngestion({ name, ingestionDataSourceSettings }: Topic, log: Log): void {
  if (!ingestionDataSourceSettings) return;
  log(`${name} ingests nothing here: its settings are kept, and its state is INGESTION_RESOURCE_ERROR`);
}
