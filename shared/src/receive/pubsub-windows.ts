/**
 * What a subscription is set to, for `checkWindows`. It is only looked at to say what does not fit: a subscription that
 * may not be read (`pubsub.subscriptions.get`, in roles/pubsub.viewer) or does not answer is simply not known, and so are
 * its topic's snapshots (`pubsub.snapshots.list` in the project).
 */
import type { PubSub } from '@google-cloud/pubsub';
import { withTimeLimit } from '../async/time-limit.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { SubscriptionWindows } from '../dedup/windows.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { guardedPubsub } from '../google-client.ts';
import { checkOptions, clock as aClock, durationFrom, port, text } from '../options.ts';

type ProtoDuration = Readonly<{ seconds?: unknown; nanos?: unknown }>;

/**
 * Within `callTimeout`, default 5 s; undefined when nothing is known. Rejects with ConfigError for wrong arguments alone. `client` stays the caller's.
 *
 * @example
 * const subscription = await subscriptionWindows(pubsub, 'orders-sub', { callTimeout: '2s' });
 * const problems = checkWindows({ dedup: {}, ...(subscription !== undefined && { subscription }) });
 */
export async function subscriptionWindows(
  client: PubSub,
  subscription: string,
  options: Readonly<{ callTimeout?: Duration; clock?: Clock }> = {},
): Promise<SubscriptionWindows | undefined> {
  port(['subscription', 'getClientConfig'], 'a client for Pub/Sub, for example new PubSub()')(
    'client',
    client,
  );
  text('subscription', subscription);
  checkOptions<typeof options>(options, { callTimeout: durationFrom('1ms'), clock: aClock });
  const { callTimeout = '5s', clock = systemClock() } = options;
  const timeoutMs = toMilliseconds(callTimeout, 'callTimeout');
  const guarded = guardedPubsub(client);
  const quietly = async <Value>(read: () => Promise<Value>): Promise<Value | undefined> => {
    try {
      return await withTimeLimit(clock, timeoutMs, read, () => new Error('too slow'));
    } catch {
      return undefined;
    }
  };
  const [metadata, snapshots] = await Promise.all([
    quietly(async () => (await guarded.subscription(subscription).getMetadata({ timeout: timeoutMs }))[0]),
    quietly(async () => (await guarded.getSnapshots({ gaxOpts: { timeout: timeoutMs } }))[0]),
  ]);
  if (metadata === undefined) return undefined;
  const hasSnapshots = snapshots?.some((snapshot) => snapshot.metadata?.topic === metadata.topic);
  return { ...windowsOf(metadata), ...(hasSnapshots !== undefined && { hasSnapshots }) };
}

type Metadata = Readonly<{
  ackDeadlineSeconds?: number | null;
  messageRetentionDuration?: ProtoDuration | null;
  topicMessageRetentionDuration?: ProtoDuration | null;
  deadLetterPolicy?: Readonly<{
    deadLetterTopic?: string | null;
    maxDeliveryAttempts?: number | null;
  }> | null;
  retryPolicy?: Readonly<{
    minimumBackoff?: ProtoDuration | null;
    maximumBackoff?: ProtoDuration | null;
  }> | null;
}>;

/** https://cloud.google.com/pubsub/docs/dead-letter-topics: five attempts where the policy names no number. */
const DEFAULT_ATTEMPTS = 5;

function windowsOf({ ackDeadlineSeconds, ...metadata }: Metadata): SubscriptionWindows {
  const messageRetentionMs = milliseconds(metadata.messageRetentionDuration);
  const topicRetentionMs = milliseconds(metadata.topicMessageRetentionDuration);
  const policy = metadata.deadLetterPolicy;
  const minimumBackoffMs = milliseconds(metadata.retryPolicy?.minimumBackoff);
  const maximumBackoffMs = milliseconds(metadata.retryPolicy?.maximumBackoff);
  return {
    ...(ackDeadlineSeconds && { ackDeadlineMs: ackDeadlineSeconds * 1_000 }),
    ...(messageRetentionMs !== undefined && { messageRetentionMs }),
    ...(topicRetentionMs !== undefined && { topicRetentionMs }),
    ...(policy?.deadLetterTopic && { maxDeliveryAttempts: policy.maxDeliveryAttempts || DEFAULT_ATTEMPTS }),
    ...(minimumBackoffMs !== undefined && { minimumBackoffMs }),
    ...(maximumBackoffMs !== undefined && { maximumBackoffMs }),
  };
}

/** A length of time that is there and not zero: emulators leave out what they do not keep, or say zero. */
function milliseconds(duration: ProtoDuration | null | undefined): number | undefined {
  if (duration === null || duration === undefined) return undefined;
  const value = Number(duration.seconds ?? 0) * 1_000 + Number(duration.nanos ?? 0) / 1_000_000;
  return Number.isFinite(value) && value > 0 ? Math.round(value) : undefined;
}
