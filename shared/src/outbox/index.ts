/** `pubsub-guarantees/outbox`: messages in a transaction of yours. The store has an entry point of its own: `/outbox/firestore`. */
export type { GapRepair } from './gap-repair.ts';
export {
  type Added,
  type Outbox,
  outbox,
  type OutboxOptions,
  type OutboxSlot,
  type SlotOptions,
} from './outbox.ts';
export type { OutboxStore, RelayStore, OutboxFailures } from './outbox-store.ts';
export type { OutboxSwept } from './pass.ts';
export type { PassContext } from './pass-work.ts';
export { type Relay, relay, type RelayOptions } from './relay.ts';
export type { DocumentEvent } from '../firestore/document-event.ts';
export { outboxTrigger, type OutboxTriggerOptions } from './trigger.ts';
export type { Tailed } from './tail.ts';
export { type OutboxSender, outboxSender } from './sender.ts';
