/**
 * The order store in this process's memory, for tests and for a single process that may lose what it holds.
 */
import type { Clock } from '../clock.ts';
import { storeUnavailable } from '../errors.ts';
import { isDue } from './place.ts';
import { type KeyState, type KeyPatch, patched } from './key-state.ts';
import type { HeldMessage, HeldQuery, KeyRef, OrderStore, ReadyKey } from './order-store.ts';

type Entry = Readonly<{ ref: KeyRef; state: KeyState; version: number }>;

export type MemoryOrder = OrderStore &
  Readonly<{
    /** Numbers held for a key, ascending. */
    heldNumbers(ref: KeyRef): readonly number[];
    stateOf(ref: KeyRef): KeyState | undefined;
  }>;

/** As a Firestore document would allow; see `firestore.ts`. */
const MAX_HELD_BYTES = 1_000_000;

export function memoryOrder(options: Readonly<{ clock: Clock; maxHeldBytes?: number }>): MemoryOrder {
  const { clock, maxHeldBytes = MAX_HELD_BYTES } = options;
  const entries = new Map<string, Entry>();
  const heldBy = new Map<string, Map<number, HeldMessage>>();
  const idOf = (ref: KeyRef): string => JSON.stringify([ref.consumer, ref.key]);
  // Versions are commit times in microseconds, made strictly increasing.
  let lastVersion = 0;
  const commitTime = (): number => (lastVersion = Math.max(clock.now() * 1_000, lastVersion + 1));

  const apply = (ref: KeyRef, base: KeyState, patch: KeyPatch): string => {
    const state = patched(entries.get(idOf(ref))?.state ?? base, patch, clock.now());
    const version = commitTime();
    entries.set(idOf(ref), { ref, state, version });
    return String(version);
  };
  const removeHeld = (ref: KeyRef, numbers: readonly number[]): void => {
    for (const number of numbers) heldBy.get(idOf(ref))?.delete(number);
  };
  const heldFrom = (ref: KeyRef, query: HeldQuery): readonly HeldMessage[] => {
    const all = [...(heldBy.get(idOf(ref))?.values() ?? [])];
    if ('number' in query) return all.filter(({ number }) => number === query.number);
    return all
      .filter(({ number }) => number >= query.from)
      .toSorted((left, right) => left.number - right.number)
      .slice(0, query.limit);
  };

  return {
    maxHeldBytes,
    async read(ref) {
      const entry = entries.get(idOf(ref));
      return { state: entry?.state, version: entry && String(entry.version), nowMs: clock.now() };
    },
    async write(ref, expected, patch, remove = []) {
      const version = entries.get(idOf(ref))?.version;
      if ((version === undefined ? undefined : String(version)) !== expected.version) return undefined;
      removeHeld(ref, remove);
      return apply(ref, expected.base, patch);
    },
    async transact(ref, base, query, decide) {
      const state = entries.get(idOf(ref))?.state ?? base;
      const decision = decide(state, heldFrom(ref, query), clock.now());
      const { patch, create, remove = [] } = decision;
      removeHeld(ref, remove);
      if (create !== undefined) {
        const held = heldBy.get(idOf(ref)) ?? new Map<number, HeldMessage>();
        if (held.has(create.number)) throw storeUnavailable(`number ${create.number} is held already`);
        heldBy.set(idOf(ref), held.set(create.number, create));
      }
      if (patch !== undefined) apply(ref, base, patch);
      return decision.result;
    },
    held: async (ref, from, limit) => heldFrom(ref, { from, limit }),
    async ready(consumer, limit) {
      const nowMs = clock.now();
      return [...entries.values()]
        .filter(({ ref, state }) => ref.consumer === consumer && isDue({ ...state, nextTryAt: 0 }, nowMs))
        .toSorted((left, right) => (left.state.readyAt ?? 0) - (right.state.readyAt ?? 0))
        .slice(0, limit)
        .map(({ ref, state, version }): ReadyKey => ({ ref, state, version: String(version), nowMs }));
    },
    heldNumbers: (ref) => heldFrom(ref, { from: 0, limit: Infinity }).map(({ number }) => number),
    stateOf: (ref) => entries.get(idOf(ref))?.state,
  };
}
