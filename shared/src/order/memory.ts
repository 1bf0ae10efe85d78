/**
 * The stream store in this process's memory, for tests and for a single process that may lose what it holds.
 *
 * A transaction takes no lock: it is run again when another commit came between its reads and its own commit. So a
 * process that stops in the middle of one keeps no other from the stream.
 */
import { checkOptions, clock as aClock, whole } from '../options.ts';
import { type Clock, systemClock } from '../clock.ts';
import { storeUnavailable } from '../errors.ts';
import { applyPatch, type StreamState } from './stream-state.ts';
import type {
  HeldMessage,
  ListedState,
  ListedStream,
  StreamAdmin,
  StreamChange,
  StreamDocument,
  StreamPage,
  StreamQuery,
  StreamRef,
  StreamStore,
  StreamTransaction,
} from './stream-store.ts';

export type MemoryStreams = StreamStore &
  StreamAdmin &
  Readonly<{
    /** Numbers that are held for a stream, ascending. */
    heldNumbers(ref: StreamRef): readonly number[];
    /** The state of a stream as it is now; undefined while no commit has written it. */
    stateOf(ref: StreamRef): StreamState | undefined;
  }>;

export type MemoryStreamsOptions = Readonly<{
  /** The store's clock (default: the machine's). */
  clock?: Clock;
  /**
   * The largest message that is held, in bytes (default 1,000,000, about what a Firestore document allows; at least
   * 1).
   */
  maxHeldBytes?: number;
}>;

type Entry = Readonly<{ ref: StreamRef; state: StreamState; version: number }>;

/** Each repeat means that another commit was applied, so this many are met only where the work itself never ends. */
const MOST_REPEATS = 1_000;

/**
 * Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * const store = memoryStreams({ clock: systemClock() });
 */
export function memoryStreams(options: MemoryStreamsOptions = {}): MemoryStreams {
  checkOptions<MemoryStreamsOptions>(options, { clock: aClock, maxHeldBytes: whole(1) });
  const { clock = systemClock(), maxHeldBytes = 1_000_000 } = options;
  const entries = new Map<string, Entry>();
  const heldBy = new Map<string, Map<number, HeldMessage>>();
  // Versions are commit times in microseconds, made strictly increasing.
  let lastVersion = 0;

  const versionOf = (ref: StreamRef): string | undefined => {
    const entry = entries.get(idOf(ref));
    return entry && String(entry.version);
  };
  const documentOf = (ref: StreamRef): StreamDocument => ({
    state: entries.get(idOf(ref))?.state,
    version: versionOf(ref),
    nowMs: clock.now(),
  });
  const heldFrom = (ref: StreamRef, from: number, limit: number): readonly HeldMessage[] =>
    [...(heldBy.get(idOf(ref))?.values() ?? [])]
      .filter(({ number }) => number >= from)
      .toSorted((left, right) => left.number - right.number)
      .slice(0, limit);

  /** Undefined when a created message exists: then nothing is written. */
  const apply = (ref: StreamRef, base: StreamState, change: StreamChange): string | undefined => {
    const { patch, create = [], remove = [] } = change;
    const id = idOf(ref);
    const held = heldBy.get(id) ?? new Map<number, HeldMessage>();
    if (create.some(({ number }) => held.has(number))) return undefined;
    for (const number of remove) held.delete(number);
    for (const one of create) held.set(one.number, one);
    heldBy.set(id, held);
    lastVersion = Math.max(Math.ceil(clock.now() * 1_000), lastVersion + 1);
    const state = applyPatch(entries.get(id)?.state ?? base, patch, clock.now());
    entries.set(id, { ref, state, version: lastVersion });
    return String(lastVersion);
  };

  const listed = (consumer: string, { state, forMs = 0, limit, after = '' }: StreamQuery): StreamPage => {
    const nowMs = clock.now();
    const found = [...entries.entries()].flatMap(([id, entry]) => {
      const since = entry.ref.consumer === consumer ? sinceWhen(state, entry.state) : null;
      if (since === null || since > nowMs - forMs) return [];
      return { ...entry, at: `${String(since).padStart(16, '0')} ${id}` };
    });
    const rest = found
      .filter(({ at }) => at > after)
      .toSorted((left, right) => (left.at < right.at ? -1 : 1));
    const streams = rest.slice(0, limit).map((entry): ListedStream => {
      return { ref: entry.ref, state: entry.state, version: String(entry.version), nowMs };
    });
    const end = rest[limit - 1]?.at;
    return { streams, ...(end !== undefined && rest.length > limit && { next: end }) };
  };

  return {
    maxHeldBytes,
    read: async (ref) => documentOf(ref),
    held: async (ref, from, limit) => heldFrom(ref, from, limit),
    async commit(ref, seen, change) {
      return versionOf(ref) === seen.version ? apply(ref, seen.state, change) : undefined;
    },
    async transact(ref, work) {
      for (let repeats = 0; repeats < MOST_REPEATS; repeats += 1) {
        const version = versionOf(ref);
        let last: Readonly<{ state: StreamState; change: StreamChange }> | undefined;
        const transaction: StreamTransaction = {
          read: async () => documentOf(ref),
          held: async (from, limit) => heldFrom(ref, from, limit),
          commit(state, change) {
            last = { state, change };
          },
        };
        const result = await work(transaction);
        // What is held never changes without the document, so its version stands for all that was read.
        if (versionOf(ref) !== version) continue;
        const applied = last === undefined || apply(ref, last.state, last.change) !== undefined;
        return { applied, result };
      }
      throw storeUnavailable(`the transaction met ${MOST_REPEATS} other commits`);
    },
    list: async (consumer, query) => listed(consumer, query),
    count: async (consumer, state) => listed(consumer, { state, limit: Infinity }).streams.length,
    countHeld: async (ref) => heldBy.get(idOf(ref))?.size ?? 0,
    heldNumbers: (ref) => heldFrom(ref, 0, Infinity).map(({ number }) => number),
    stateOf: (ref) => entries.get(idOf(ref))?.state,
  };
}

const idOf = ({ consumer, source, key }: StreamRef): string => JSON.stringify([consumer, source, key]);

/** Since when a stream is in a state; null when it is in another. */
function sinceWhen(wanted: ListedState, state: StreamState): number | null {
  switch (wanted) {
    case 'any':
      return 0;
    case 'due':
      return state.readyAt;
    case 'waiting':
      return state.waitingSince;
    case 'blocked':
      return state.blocked?.atMs ?? null;
  }
}
