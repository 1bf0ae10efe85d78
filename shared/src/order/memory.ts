/**
 * The order store in this process's memory, for tests and for a single process that may lose what it holds.
 */
import type { Clock } from '../clock.ts';
import { storeUnavailable } from '../errors.ts';
import { isDue } from './place.ts';
import { type KeyState, type KeyPatch, patched } from './key-state.ts';
import type {
  HeldMessage,
  HeldQuery,
  KeyPage,
  KeyQuery,
  KeyRef,
  ListedState,
  OrderStore,
  ReadyKey,
} from './order-store.ts';

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
    if ('numbers' in query) return all.filter(({ number }) => query.numbers.includes(number));
    return all
      .filter(({ number }) => number >= query.from)
      .toSorted((left, right) => left.number - right.number)
      .slice(0, query.limit);
  };

  const listed = (consumer: string, { state, forMs = 0, limit, after = '' }: KeyQuery): KeyPage => {
    const nowMs = clock.now();
    const found = [...entries.entries()].flatMap(([id, entry]) => {
      const since = entry.ref.consumer === consumer ? sinceWhen(state, entry.state) : null;
      if (since === null || since > nowMs - forMs) return [];
      return { ...entry, at: `${String(since).padStart(16, '0')} ${id}` };
    });
    const rest = found
      .filter(({ at }) => at > after)
      .toSorted((left, right) => (left.at < right.at ? -1 : 1));
    const keys = rest.slice(0, limit).map((entry): ReadyKey => {
      return { ref: entry.ref, state: entry.state, version: String(entry.version), nowMs };
    });
    const end = rest[limit - 1]?.at;
    return { keys, ...(end !== undefined && rest.length > limit && { next: end }) };
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
      const { patch, create = [], remove = [] } = decision;
      removeHeld(ref, remove);
      const held = heldBy.get(idOf(ref)) ?? new Map<number, HeldMessage>();
      for (const one of create) {
        if (held.has(one.number)) throw storeUnavailable(`number ${one.number} is held already`);
        heldBy.set(idOf(ref), held.set(one.number, one));
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
    list: async (consumer, query) => listed(consumer, query),
    count: async (consumer, state) => listed(consumer, { state, limit: Infinity }).keys.length,
    countHeld: async (ref) => heldBy.get(idOf(ref))?.size ?? 0,
    heldNumbers: (ref) => heldFrom(ref, { from: 0, limit: Infinity }).map(({ number }) => number),
    stateOf: (ref) => entries.get(idOf(ref))?.state,
  };
}

/** Since when a key is in a state; null when it is in another. */
function sinceWhen(wanted: ListedState, state: KeyState): number | null {
  switch (wanted) {
    case 'any':
      return 0;
    case 'ready':
      return state.readyAt;
    case 'waiting':
      return state.waitingSince;
    case 'halted':
      return state.halted?.atMs ?? null;
  }
}
