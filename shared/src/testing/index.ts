/**
 * `pubsub-guarantees/testing`: virtual time, a publisher that remembers, and every port in memory, with the faults that
 * a test asks for. Nothing here outlives its process.
 */
export { type MemoryInbox, memoryInbox, type MemoryTransaction } from '../dedup/inbox-memory.ts';
export { memoryClaims } from '../dedup/memory.ts';
export { type MemoryStreams, memoryStreams, type MemoryStreamsOptions } from '../order/memory.ts';
export { type MemoryOutbox, memoryOutbox, type MemoryOutboxTransaction } from '../outbox/memory.ts';
export { type MemoryPayloads, memoryPayloads } from '../payload/memory.ts';
export {
  type MemorySagas,
  memorySagas,
  type MemoryStepRecords,
  memoryStepRecords,
} from '../sagas/memory.ts';
export { memoryTraces } from '../sagas/memory-traces.ts';
export { type MemoryLedger, memoryLedger, type MemoryLedgerOptions } from '../schedules/memory.ts';
export { memoryCounters } from '../sequence/memory.ts';
export { type MemoryTasks, memoryTasks } from '../tasks/memory.ts';
export { type MemoryPublisher, memoryPublisher } from './memory-publisher.ts';
export { type VirtualClock, virtualClock } from './virtual-clock.ts';
