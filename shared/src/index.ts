/** The public API. Adapters that load a vendor's client have entry points of their own (see the package's exports). */
export { ATTRIBUTE, LONGEST_DELAY_SECONDS, parseWishes, type Sequence, type Wishes } from './attributes.ts';
export type { BodySchema, TypedHandler, TypedMessage } from './body-schema.ts';
export { type Cancel, type Clock, sleep, systemClock } from './clock.ts';
export { type DeadLetteringOptions, deadLettering, WHOLE_MESSAGE } from './dead-letter/dead-lettering.ts';
export type { ClaimAnswer, ClaimRequest, ClaimStore, HeldClaim, RenewalAnswer } from './dedup/claim-store.ts';
export { dedup } from './dedup/dedup.ts';
export { inbox, type InboxOptions } from './dedup/inbox.ts';
export { type MemoryInbox, memoryInbox, type MemoryTransaction } from './dedup/inbox-memory.ts';
export type { InboxContext, InboxHandler } from './dedup/inbox-run.ts';
export type { Completion, InboxStore } from './dedup/inbox-store.ts';
export { memoryClaims } from './dedup/memory.ts';
export type { DedupOptions } from './dedup/settings.ts';
export { checkWindows, type Misfit, type SubscriptionWindows, type Windows } from './dedup/windows.ts';
export { type DelayOptions, delay } from './delay/delay.ts';
export { republish, type RepublishOptions, type RepublishPorts } from './delay/republish.ts';
export { type RetryLaterOptions, retryLater } from './delay/retry-later.ts';
export { type NamedQueue, severalQueues } from './tasks/several-queues.ts';
export { taskHeaders } from './tasks/task-headers.ts';
export type { CreateLimits, Task, TaskQueue } from './tasks/task-queue.ts';
export { type Duration, toMilliseconds } from './duration.ts';
export { ConfigError, PermanentError, TransientError } from './errors.ts';
export { guarded, type GuardedHandler, type GuardedOptions } from './guarded.ts';
export { contextFor } from './context.ts';
export { identifierHash } from './hash.ts';
export { compose, type Context, type Handler, type Middleware, type SweepContext } from './handler.ts';
export { consoleLog, jsonLog, type JsonLogOptions, type Log, type LogFields, silent } from './log.ts';
export { type Attributes, checkOutgoing, LIMITS, type Message, type OutgoingMessage } from './message.ts';
export type { CounterStore } from './sequence/counter-store.ts';
export { memoryCounters } from './sequence/memory.ts';
export { type Numbered, type Sequencer, type SequencerOptions, sequencer } from './sequence/sequencer.ts';
export type { StreamListing, StreamListOptions, StreamName, StreamOperations } from './order/admin.ts';
export { type OrderedDelivery, orderedDelivery } from './order/in-order.ts';
export { type MemoryStreams, memoryStreams, type MemoryStreamsOptions } from './order/memory.ts';
export type { CounterStart, GapOptions, RetryOptions, StreamOptions } from './order/options.ts';
export type { ListedState, StreamAdmin, StreamRef, StreamStore } from './order/stream-store.ts';
export type { StreamDetails, StreamStatus, StreamView } from './order/stream-view.ts';
export type { StreamSweep, SweepResult } from './order/sweep.ts';
export type { StreamWake, Woken } from './order/wake.ts';
export {
  readWake,
  type WakeCall,
  type WakeStream,
  type WakeTasks,
  wakeTasks,
  type WakeTasksOptions,
} from './order/wake-tasks.ts';
export { type GapRepair, gapRepair } from './outbox/gap-repair.ts';
export { memoryOutbox, type MemoryOutbox, type MemoryOutboxTransaction } from './outbox/memory.ts';
export {
  type Added,
  type Outbox,
  outbox,
  type OutboxOptions,
  type OutboxSlot,
  type SlotOptions,
} from './outbox/outbox.ts';
export type { OutboxStore, RelayStore, Troubled } from './outbox/outbox-store.ts';
export type { PassResult } from './outbox/pass.ts';
export type { PassContext } from './outbox/pass-work.ts';
export { type Relay, relay, type RelayOptions } from './outbox/relay.ts';
export { type OutboxSender, outboxSender } from './outbox/sender.ts';
export { ack, type AckReason, deadLetter, type Outcome, retry } from './outcome.ts';
export { lazyPayloads } from './payload/lazy-payloads.ts';
export type { PayloadRef, PayloadRoom, PayloadSweep } from './payload/payload-room.ts';
export { checkAttributes, type CheckAttributesOptions, type Granted } from './check-attributes.ts';
export { type MessageParts, outgoing } from './publish/compose-message.ts';
export { type ForwardOptions, forward } from './publish/forward.ts';
export type { Publisher } from './publish/publisher.ts';
export {
  type BytesInFlight,
  bytesFor,
  bytesInFlight,
  payloadsThatFit,
} from './receive/bytes-in-flight.ts';
export { type PublishingOptions, publishing } from './publish/publishing.ts';
export { type MessageSchema, schemaOf } from './publish/schema.ts';
export { untilStopped } from './publish/until-stopped.ts';
export { type DeliverOptions, deliver } from './receive/deliver.ts';
export { type HttpDoorOptions, type HttpRequest, type HttpResponse, httpDoor } from './receive/http-door.ts';
export { settle } from './receive/settle.ts';
export type { EntryState, LedgerTimes } from './schedules/entry.ts';
export { lazyLedger } from './schedules/lazy-ledger.ts';
export type { Ledger, TransactionalLedger } from './schedules/ledger.ts';
export { type MemoryPayloads, memoryPayloads } from './payload/memory.ts';
export { type MemoryTasks, memoryTasks } from './tasks/memory.ts';
export { type MemoryLedger, memoryLedger, type MemoryLedgerOptions } from './schedules/memory.ts';
export {
  type Change,
  type ScheduleParts,
  type Schedules,
  schedules,
  type SchedulesOptions,
  type Slot,
} from './schedules/schedules.ts';
export type { ListOptions, ScheduleList, ScheduleView } from './schedules/views.ts';
export { type ScheduleSweep, sweepSchedules } from './schedules/sweep.ts';
export { decodeMessage } from './stored-message.ts';
