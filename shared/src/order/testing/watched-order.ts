/**
 * A store that is looked at after each commit: a key that looks as if nothing were held for it has nothing held. On
 * that rests that whoever runs its next number need not ask. And no more attempts are counted than handlers have failed,
 * and owners were taken over from.
 */
import { isEmpty } from '../key-state.ts';
import type { MemoryOrder } from '../memory.ts';
import type { KeyRef } from '../order-store.ts';

/** `failures`: of handlers, by `key#number`. */
export function watchedOrder(
  store: MemoryOrder,
  violations: string[],
  failures: ReadonlyMap<string, number>,
): MemoryOrder {
  const takeovers = new Map<string, number>();
  const look = (ref: KeyRef): void => {
    const state = store.stateOf(ref);
    if (state === undefined) return;
    const head = `${ref.key}#${state.last + 1}`;
    if (state.attempts > (failures.get(head) ?? 0) + (takeovers.get(head) ?? 0))
      violations.push(`${head} has ${state.attempts} attempts, and did not fail so often`);
    if (!isEmpty(state)) return;
    const waits = store.heldNumbers(ref).filter((number) => number > state.last);
    if (waits.length > 0)
      violations.push(`${ref.key}: ${waits.join(', ')} held, and the key does not show it`);
  };
  return {
    ...store,
    async write(ref, ...rest) {
      const before = store.stateOf(ref)?.lease?.owner;
      const version = await store.write(ref, ...rest);
      const after = store.stateOf(ref);
      if (before !== undefined && after?.lease && after.lease.owner !== before) {
        const head = `${ref.key}#${after.last + 1}`;
        takeovers.set(head, (takeovers.get(head) ?? 0) + 1);
      }
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
