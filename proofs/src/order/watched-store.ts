/**
 * A store that checks itself after each commit: the document counts what is held, nothing up to `last` is held, what is
 * held is visible to a visit, a gap or an operator, and no more attempts are counted than handlers have failed, and
 * leases were taken over; one more where the number was in the batch of a process that died.
 */
import type { MemoryStreams } from '../../../shared/src/order/memory.ts';
import { isSuspect, type StreamState } from '../../../shared/src/order/stream-state.ts';
import type { StreamRef } from '../../../shared/src/order/stream-store.ts';

/** `failures`: of handlers, by `key#number`. */
export function watchedStore(
  store: MemoryStreams,
  violations: string[],
  failures: ReadonlyMap<string, number>,
): MemoryStreams {
  const takeovers = new Map<string, number>();
  const complain = (text: string): void => void violations.push(text);

  const look = (ref: StreamRef, before: StreamState | undefined): void => {
    const state = store.stateOf(ref);
    if (state === undefined || state === before) return;
    const held = store.heldNumbers(ref);
    const next = `${ref.key}#${state.last + 1}`;
    if (before !== undefined && isTakeover(before, state)) {
      takeovers.set(next, (takeovers.get(next) ?? 0) + 1);
    }
    const inBatch = isSuspect(state) ? 1 : 0;
    if (state.attempts > (failures.get(next) ?? 0) + (takeovers.get(next) ?? 0) + inBatch) {
      complain(`${next} has ${state.attempts} attempts, and did not fail so often`);
    }
    if (state.held !== held.length) complain(`${ref.key}: ${state.held} counted, and ${held.length} held`);
    if (held.some((number) => number <= state.last))
      complain(`${ref.key}: ${held.join(', ')} held up to ${state.last}`);
    if (before !== undefined && before.last > state.last)
      complain(`${ref.key} went back from ${before.last} to ${state.last}`);
    const isVisible = state.lease !== null || state.readyAt !== null || state.blocked !== null;
    if (isVisible || held.length === 0) return;
    if (held.includes(state.last + 1)) complain(`${next} is held, and no visit would come`);
    if (state.waitingSince === null || state.gapAt !== state.last)
      complain(`${ref.key}: a gap that the stream does not show`);
  };

  return {
    ...store,
    async commit(ref, ...rest) {
      const before = store.stateOf(ref);
      const version = await store.commit(ref, ...rest);
      look(ref, before);
      return version;
    },
    async transact(ref, work) {
      let before = store.stateOf(ref);
      const result = await store.transact(ref, (inside) => {
        before = store.stateOf(ref);
        return work(inside);
      });
      look(ref, before);
      return result;
    },
  };
}

/** The lease of another batch is gone, or replaced, and nothing has failed, or was counted as done. */
const isTakeover = (before: StreamState, state: StreamState): boolean =>
  before.lease !== null &&
  state.lease?.owner !== before.lease.owner &&
  state.last === before.last &&
  state.nextTryAt === before.nextTryAt &&
  state.blocked === null;
