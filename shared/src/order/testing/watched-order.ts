/**
 * A store that is looked at after each commit: a key that looks as if nothing were held for it has nothing held. On
 * that rests that whoever runs its next number need not ask.
 */
import { isEmpty } from '../key-state.ts';
import type { MemoryOrder } from '../memory.ts';
import type { KeyRef } from '../order-store.ts';

export function watchedOrder(store: MemoryOrder, violations: string[]): MemoryOrder {
  const look = (ref: KeyRef): void => {
    const state = store.stateOf(ref);
    if (state === undefined || !isEmpty(state)) return;
    const waits = store.heldNumbers(ref).filter((number) => number > state.last);
    if (waits.length > 0)
      violations.push(`${ref.key}: ${waits.join(', ')} held, and the key does not show it`);
  };
  return {
    ...store,
    async write(ref, ...rest) {
      const version = await store.write(ref, ...rest);
      look(ref);
      return version;
    },
    async transact(ref, ...rest) {
      const result = await store.transact(ref, ...rest);
      look(ref);
      return result;
    },
  };
}
