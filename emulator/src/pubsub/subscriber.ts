/** The methods of google.pubsub.v1.Subscriber that this server carries out. */
import type { ServerUnaryCall, UntypedServiceImplementation } from '@grpc/grpc-js';
import type { Clock } from '../clock.ts';
import { invalidArgument } from '../grpc-server.ts';
import { assertAckIds } from './ack-ids.ts';
import { assertDeadline } from './ack-deadline.ts';
import type { DropsAck } from './dropped-acks.ts';
import { assertAllValid } from './exactly-once.ts';
import { unary, type Log } from './methods.ts';
import { projectPrefix } from './names.ts';
import { page } from './paging.ts';
import { pull, type PullRequest, type PullResponse } from './pull.ts';
import { envelopeVersion, pushConfig } from './push-config.ts';
import type { Registry } from './registry.ts';
import { snapshotMethods } from './snapshot-methods.ts';
import { streamingPull, type StreamingPullCall } from './streaming-pull.ts';
import { assertPullIfExactlyOnce, changedSubscription, newSubscription } from './subscription-config.ts';
import type { FieldMask, Paging, PushConfig, Subscription } from './wire.ts';

const PULLED: PushConfig = { pushEndpoint: '', attributes: {}, oidcToken: null };

type BySubscription = Readonly<{ subscription: string }>;
type Update = Readonly<{ subscription: Subscription | null; updateMask: FieldMask | null }>;
type AckIds = BySubscription & Readonly<{ ackIds: readonly string[] }>;

export function subscriberMethods(
  registry: Registry,
  clock: Clock,
  log: Log,
  dropsAck: DropsAck,
): UntypedServiceImplementation {
  /** The dead-letter topic must exist when it is named; when it is deleted later its messages stay. */
  const withDeadLetterTopic = (config: Subscription): Subscription => {
    if (config.deadLetterPolicy !== null) registry.topic(config.deadLetterPolicy.deadLetterTopic);
    return config;
  };
  const shown = (config: Subscription): Subscription => ({
    ...config,
    // As the service shows a subscription that is pulled: an empty message, and not none.
    pushConfig: config.pushConfig ?? PULLED,
    topicMessageRetentionDuration: registry.topicRetention(config.topic),
  });
  return {
    CreateSubscription: unary(log, (request: Subscription) =>
      shown(registry.createSubscription(withDeadLetterTopic(newSubscription(request, registry.signs)))),
    ),
    GetSubscription: unary(log, ({ subscription }: BySubscription) =>
      shown(registry.subscription(subscription).config()),
    ),
    UpdateSubscription: unary(log, ({ subscription, updateMask }: Update) => {
      if (subscription === null)
        throw invalidArgument('The UpdateSubscriptionRequest names no subscription.');
      const current = registry.subscription(subscription.name).config();
      const changed = changedSubscription(current, subscription, updateMask, registry.signs);
      return shown(
        registry.replaceSubscription(
          changed.deadLetterPolicy === current.deadLetterPolicy ? changed : withDeadLetterTopic(changed),
        ),
      );
    }),
    DeleteSubscription: unary(log, ({ subscription }: BySubscription) => {
      registry.deleteSubscription(subscription);
      return {};
    }),
    ListSubscriptions: unary(log, (request: Paging & { project: string }) => {
      const prefix = projectPrefix(request.project, 'subscriptions');
      const own = [...registry.subscriptionNames()].filter((name) => name.startsWith(prefix));
      const { names, nextPageToken } = page(own, request);
      return {
        subscriptions: names.map((name) => shown(registry.subscription(name).config())),
        nextPageToken,
      };
    }),
    ModifyPushConfig: unary(log, (request: BySubscription & { pushConfig: PushConfig | null }) => {
      const current = registry.subscription(request.subscription).config();
      const version = envelopeVersion(current.pushConfig);
      const changed = { ...current, pushConfig: pushConfig(request.pushConfig, registry.signs, version) };
      assertPullIfExactlyOnce(changed);
      registry.replaceSubscription(changed);
      return {};
    }),
    Acknowledge: unary(log, ({ subscription, ackIds }: AckIds) => {
      const { delivery, config, expiration } = registry.subscription(subscription);
      const { enableExactlyOnceDelivery } = config();
      assertAckIds(ackIds, enableExactlyOnceDelivery);
      expiration.used();
      const invalid = delivery.acknowledge(ackIds);
      if (enableExactlyOnceDelivery) assertAllValid(invalid);
      return {};
    }),
    ModifyAckDeadline: unary(
      log,
      ({ subscription, ackIds, ackDeadlineSeconds }: AckIds & { ackDeadlineSeconds: number }) => {
        const { delivery, config, expiration } = registry.subscription(subscription);
        const { enableExactlyOnceDelivery } = config();
        assertAckIds(ackIds, enableExactlyOnceDelivery);
        assertDeadline(ackDeadlineSeconds);
        expiration.used();
        const invalid = delivery.modifyAckDeadlines(new Map(ackIds.map((id) => [id, ackDeadlineSeconds])));
        if (enableExactlyOnceDelivery) assertAllValid(invalid);
        return {};
      },
    ),
    Pull: unary(log, (request: PullRequest, call: ServerUnaryCall<PullRequest, PullResponse>) =>
      pull(registry, clock, {
        request,
        cancelled: () => call.cancelled,
        onCancelled: (act) => call.on('cancelled', act),
      }),
    ),
    ...snapshotMethods(registry, log),
    StreamingPull: (call: StreamingPullCall) => streamingPull(registry, call, dropsAck),
  };
}
