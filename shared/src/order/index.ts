/** `pubsub-guarantees/order`: in order. The store has an entry point of its own: `/order/firestore`. */
export type { StreamListing, StreamListOptions, StreamName, StreamOperations } from './admin.ts';
export { type OrderedDelivery, orderedDelivery } from './in-order.ts';
export type { CounterStart, GapOptions, RetryOptions, StreamOptions } from './options.ts';
export type { ListedState, StreamAdmin, StreamRef, StreamStore } from './stream-store.ts';
export type { StreamDetails, StreamStatus, StreamView } from './admin.ts';
export type { StreamSweep } from './sweep.ts';
export type { StreamWake, Woken } from './wake.ts';
export {
  readWake,
  type WakeCall,
  type WakeStream,
  type WakeTasks,
  wakeTasks,
  type WakeTasksOptions,
} from './wake.ts';
