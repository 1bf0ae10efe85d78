/** What the server holds of one subscription. */
import type { Delivery } from './delivery.ts';
import type { Filter } from './filter.ts';
import type { Consumer } from './lease.ts';
import type { Subscription } from './wire.ts';

export type SubscriptionState = Readonly<{
  config(): Subscription;
  delivery: Delivery;
  matches: Filter;
  /** Pushes that are not answered yet. */
  pushing(): number;
  /** Open streams and waiting pulls, each with what ends it with an error. */
  open: Map<Consumer, (error: Error) => void>;
}>;

/** Ends the open streams and waiting pulls with the error. */
export function endCalls({ open, delivery }: SubscriptionState, error: Error): void {
  for (const [consumer, abort] of open) {
    delivery.leave(consumer);
    abort(error);
  }
  open.clear();
}
