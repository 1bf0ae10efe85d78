/**
 * Seek: sets a subscription's backlog to what is retained from a time on, or to a snapshot. What was delivered and not
 * acknowledged is taken back, so that its ack IDs are stale and all messages come again in the order of publishing.
 * https://cloud.google.com/pubsub/docs/replay-overview
 */
import { status } from '@grpc/grpc-js';
import { invalidArgument, StatusError } from '../grpc-server.ts';
import { assertAttached } from './pull.ts';
import type { Registry } from './registry.ts';
import { inOrder } from './stored.ts';
import type { Timestamp } from './wire.ts';

export type SeekRequest = Readonly<{ subscription: string; time?: Timestamp | null; snapshot?: string }>;

/**
 * Throws NOT_FOUND for what does not exist, INVALID_ARGUMENT without a target, FAILED_PRECONDITION for a detached
 * subscription and for a snapshot of another topic.
 */
export function seek(registry: Registry, { subscription, time, snapshot }: SeekRequest): void {
  const state = registry.subscription(subscription);
  assertAttached(state.config());
  const { delivery, matches, expiration } = state;
  const own = inOrder(delivery.unacked(), delivery.acked());
  if (time) {
    const fromMs = Number(time.seconds) * 1000 + time.nanos / 1_000_000;
    const topic = registry
      .retained(state.config().topic)
      .filter(({ message }) => matches(message.attributes));
    const wanted = inOrder(own, topic).filter(({ publishTimeMs }) => publishTimeMs >= fromMs);
    expiration.used();
    delivery.restart(
      wanted,
      own.filter(({ publishTimeMs }) => publishTimeMs < fromMs),
    );
    return;
  }
  if (!snapshot) throw invalidArgument('The SeekRequest must name a time or a snapshot.');
  if (registry.snapshots.get(snapshot).topic !== state.config().topic) {
    throw new StatusError(
      status.FAILED_PRECONDITION,
      'The topic of the snapshot is not the topic of the subscription.',
    );
  }
  const wanted = registry.snapshots.messages(snapshot).filter(({ message }) => matches(message.attributes));
  const ids = new Set(wanted.map(({ message }) => message.messageId));
  expiration.used();
  delivery.restart(
    inOrder(wanted),
    own.filter(({ message }) => !ids.has(message.messageId)),
  );
}
