/**
 * For tests of handlers and adapters: virtual time and a publisher that remembers.
 */
export { type MemoryPublisher, memoryPublisher } from './memory-publisher.ts';
export { type VirtualClock, virtualClock } from './virtual-clock.ts';
