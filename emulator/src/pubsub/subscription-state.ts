/** What the server holds of one subscription. */
import type { Delivery } from './delivery.ts';
import type { Expiration } from './expiration.ts';
import type { Filter } from './filter.ts';
import type { Consumer } from './lease.ts';
import type { Subscription } from './wire.ts';

export type SubscriptionState = Readonly<{
  config(): Subscription;
  delivery: Delivery;
  expiration: Expiration;
  matches: Filter;
  /** Pushes that are not answered yet. */
  pushing(): number;
  /** Open streams and waiting pulls, each with what ends it with an error. */
  open: Map<Consumer, (error: Error) => void>;
}>;

/** A stream or a pull has ended, for whatever reason: up to now the subscription was in use. */
export function leaveCall({ open, delivery, expiration }: SubscriptionState, consumer: Consumer): void {
  // First, because what is open counts as use until here.
  if (open.has(consumer)) expiration.used();
  open.delete(consumer);
  delivery.leave(consumer);
}

/** Ends the open streams and waiting pulls with the error. */
export function endCalls(state: SubscriptionState, error: Error): void {
  for (const [consumer, abort] of state.open) {
    leaveCall(state, consumer);
    abort(error);
  }
}
