/**
 * How long a subscription has not been used, and whether it has expired of that
 * (https://cloud.google.com/pubsub/docs/create-subscription: "open connections, active pulls, or successful pushes", and
 * a change of its properties; google/pubsub/v1/pubsub.proto, Subscription.expiration_policy: a subscriber "issuing
 * operations on the subscription"). Publishing to its topic, reading its configuration and failed pushes are no use.
 *
 * No timer stands for an expiry: a use is a note of the time, and a caller that is about to do something with the subscription
 * asks first. So a clock that runs until nothing is due does not run weeks ahead.
 */
import { durationMs, type Subscription } from './wire.ts';

export type Expiration = Readonly<{
  /** The subscription is used now. What has expired stays so. */
  used(): void;
  isOver(): boolean;
  /** Milliseconds since it was last used; undefined where that does not matter, because it never expires. */
  idleMs(): number | undefined;
}>;

/**
 * `connected`: whether a stream or a pull is open, which is use as long as it lasts.
 * `idleMs`: for how long it had not been used before.
 */
export function expiration(
  now: () => number,
  config: () => Subscription,
  connected: () => boolean,
  idleMs: number,
): Expiration {
  let lastUsedMs = now() - idleMs;
  const idle = (): number => (connected() ? 0 : now() - lastUsedMs);
  const isOver = (): boolean => {
    const ttl = config().expirationPolicy?.ttl;
    return ttl !== null && ttl !== undefined && idle() >= durationMs(ttl);
  };
  return {
    used() {
      if (!isOver()) lastUsedMs = now();
    },
    isOver,
    idleMs: () => (config().expirationPolicy?.ttl ? idle() : undefined),
  };
}
