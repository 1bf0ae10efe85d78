/**
 * Counters in this process's memory, for tests: a restart begins at 1 again, under another epoch.
 */
import { type Counter, type CounterStore, taken } from './counter-store.ts';

/**
 * A store of counters that ends with its process.
 *
 * @example
 * const numbers = sequencer(memoryCounters());
 */
export function memoryCounters(): CounterStore {
  const counters = new Map<string, Counter>();
  return {
    async take(key, request) {
      const { range, counter } = taken(counters.get(key), request);
      if (counter !== undefined) counters.set(key, counter);
      return range;
    },
  };
}
