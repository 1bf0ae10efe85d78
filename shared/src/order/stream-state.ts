/**
 * What is remembered about one stream of one consumer, and how a change is applied to it. Pure: the stores share it,
 * so a stream means the same in memory and in Firestore.
 *
 * All times are milliseconds since the epoch on the store's clock; a process's own wall clock decides nothing.
 */

/**
 * The stored format. Documents of another one are refused with `UNREADABLE_STATE`. It is raised only where an older reader
 * would misread a document; a field that it may ignore, as `opening`, does not raise it.
 */
export const STREAM_FORMAT = 3;

export type StreamState = Readonly<{
  /** The highest number that is done; everything up to it is done or skipped. */
  last: number;
  /** The first epoch that this stream saw, or null while no message named one. */
  epoch: string | null;
  /** The ID of the latest commit. A process whose commit has an unknown outcome recognises it by this. */
  commit: string;
  /** How many messages are held. */
  held: number;
  /**
   * Which start of a batch has the stream, until when, and the last number of the batch. Still set after `untilMs`: its
   * process died or lost the store.
   */
  lease: Readonly<{ owner: string; untilMs: number; to: number }> | null;
  /** Failures of the next number, and takeovers of an expired lease, since the last progress. */
  attempts: number;
  /**
   * Up to here numbers may have been running in a process that died, or lost its lease; 0 for none. While `last` is
   * below, each next number is a suspect: it is started alone, by a visit, and its start in that batch is counted.
   */
  suspectsTo: number;
  /** The next number is not started before this; 0 when it never failed. */
  nextTryAt: number;
  /** Since when something is held behind a number that has not come; belongs to `gapAt`. */
  waitingSince: number | null;
  /** The value of `last` at which the gap of `waitingSince` was seen: another one is another gap. */
  gapAt: number | null;
  /** When a sweep last looked for the missing numbers of this gap at their publisher; null for a gap that is new. */
  repairedAt: number | null;
  /** When a visit must come; null when nothing is left to do. The one thing that a sweep looks for. */
  readyAt: number | null;
  /** The identities of numbers that were started without being held; kept until `last` passes all of them. */
  run: Run | null;
  /** Set while the stream is blocked at the number after `last`, until an operator resumes or skips it. */
  blocked: Blocked | null;
  /**
   * Ranges, both ends included, that were skipped: as missing (`onGap`), as poison, by an operator, below a counter's
   * start. Why is not stored; a message inside one is a late arrival.
   */
  skipped: readonly Range[];
  /** Content hashes of the last numbers done, oldest first, '' for a skipped one; the last entry belongs to `last`. */
  recentHashes: readonly string[];
  /** The first number that was not handed out when the stream was first seen, where a counter says where it begins. */
  opening?: number;
}>;

/** `hashes[0]` belongs to `number`, the others to the numbers that follow. */
export type Run = Readonly<{ number: number; hashes: readonly string[] }>;

/** Why a stream is blocked: the error's code, the beginning of its text, and since when. */
export type Blocked = Readonly<{ code: string; text: string; atMs: number }>;

/** Fields to change; the store computes a lease's end from its own commit time. */
export type StreamPatch = Readonly<
  Partial<Omit<StreamState, 'lease' | 'commit'>> & {
    commit: string;
    lease?: Readonly<{ owner: string; lengthMs: number; to: number }> | null;
  }
>;

/** A patch that has no ID yet: what a decision answers. The caller of `commit` adds the ID. */
export type StreamFields = Omit<StreamPatch, 'commit'>;

/** How many content hashes a stream remembers; see `onUnknownStale` for what becomes of older numbers. */
const RECENT_HASHES = 100;

/** A stream that no commit has written yet; `start` is its first number. */
export const freshStream = (start: number): StreamState => ({
  last: start - 1,
  epoch: null,
  commit: '',
  held: 0,
  lease: null,
  attempts: 0,
  suspectsTo: 0,
  nextTryAt: 0,
  waitingSince: null,
  gapAt: null,
  repairedAt: null,
  readyAt: null,
  run: null,
  blocked: null,
  skipped: [],
  recentHashes: [],
});

/**
 * A stream that no commit has written yet, where the publisher's counter says where it begins: `next` is the first
 * number that was not handed out when the stream was first seen.
 *
 * Numbers from there on are certain to come, and are waited for as `onGap` says. Of those below it is unknown which were
 * published before the subscription existed. So what comes of them runs in order, what has not come `gap.timeout` after
 * the first of them is skipped, and what comes later still is a dead letter (`LATE_ARRIVAL`). Beginning at the counter
 * itself would acknowledge the backlog as stale, with the very message that made the stream known; beginning at the first
 * message that comes would do so with those that it overtook.
 */
export function openingStream(
  { next, epoch }: Readonly<{ next: number; epoch: string }>,
  maxAhead: number,
): StreamState {
  // As far back as `maxAhead` allows while as much is left ahead. What is older still is late, and never stale.
  const last = Math.max(0, next - 1 - Math.ceil(maxAhead / 2));
  return {
    ...freshStream(last + 1),
    epoch,
    ...(next > 1 && { opening: next }),
    ...(last > 0 && { skipped: [{ from: 1, to: last }] }),
  };
}

/** Whether a missing number may have been published before this consumer began. */
export const isOpening = ({ opening }: StreamState, number: number): boolean =>
  opening !== undefined && number < opening;

/** Whether nothing of the stream has run yet, nor been skipped but what was too old from the start. */
export const hasNotBegun = (state: StreamState): boolean => state.recentHashes.length === 0;

/** `state` after `patch` was committed at `nowMs`. */
export function applyPatch(state: StreamState, patch: StreamFields, nowMs: number): StreamState {
  const { lease, ...fields } = patch;
  const merged = { ...state, ...fields };
  if (lease === undefined) return merged;
  return { ...merged, lease: lease && { owner: lease.owner, untilMs: nowMs + lease.lengthMs, to: lease.to } };
}

/** What moving `last` over `hashes` (of last + 1, last + 2, …) writes. */
export function progress(state: StreamState, hashes: readonly string[]): StreamFields {
  if (hashes.length === 0) return {};
  const last = state.last + hashes.length;
  return {
    last,
    recentHashes: [...state.recentHashes, ...hashes].slice(-RECENT_HASHES),
    // The start of a suspect in the batch whose process died is one of its attempts.
    attempts: last < state.suspectsTo ? 1 : 0,
    nextTryAt: 0,
    // The identities of what was started outlive its failures, until `last` passes them.
    ...(state.run !== null && state.run.number + state.run.hashes.length <= last + 1 && { run: null }),
  };
}

/** What moving `last` to `to` without running anything writes: the numbers on the way are skipped. */
export function skippingTo(state: StreamState, to: number): StreamFields {
  const unknown = Array.from({ length: Math.min(to - state.last, RECENT_HASHES) }, () => '');
  return {
    ...progress({ ...state, last: to - unknown.length }, unknown),
    skipped: addRange(state.skipped, { from: state.last + 1, to }),
  };
}

/**
 * The identities from `number` on, the one after `last`, when it and as many as `hashes` has are started. Those of the
 * numbers behind them that were started before stay: a crash may have kept them from being counted as done.
 */
export function startedRun({ run }: StreamState, number: number, hashes: readonly string[]): Run {
  const before = run === null ? [] : run.hashes.slice(Math.max(0, number + hashes.length - run.number));
  return { number, hashes: [...hashes, ...before] };
}

/** The identity of a number that was started without being held, or undefined where none was. */
export const runHash = ({ run }: StreamState, number: number): string | undefined =>
  run === null || number < run.number ? undefined : run.hashes[number - run.number];

/** The content hash of a number that is done, or undefined when it is no longer remembered. */
export function doneHash(state: StreamState, number: number): string | undefined {
  const hash = state.recentHashes[state.recentHashes.length - 1 - (state.last - number)];
  return hash === '' ? undefined : hash;
}

export const isSkipped = (state: StreamState, number: number): boolean =>
  state.skipped.some(({ from, to }) => from <= number && number <= to);

/** No number is known to be missing. */
export const NO_GAP = { waitingSince: null, gapAt: null, repairedAt: null } as const;

/**
 * The fields of the gap in front of the first held number. Its age is kept while `last` does not change: every sweep
 * would otherwise make it young again.
 */
export function gapFields(state: StreamState, firstHeld: number | undefined, nowMs: number): StreamFields {
  if (firstHeld === undefined || firstHeld <= state.last + 1) return NO_GAP;
  const isSame = state.gapAt === state.last && state.waitingSince !== null;
  return isSame ? {} : { waitingSince: nowMs, gapAt: state.last, repairedAt: null };
}

/** The document itself says that the number after `last` is not held: every hold of it would have made the stream due. */
export const showsGap = (state: StreamState): boolean =>
  state.lease === null && state.readyAt === null && state.waitingSince !== null && state.gapAt === state.last;

/** The next number may have been running in a process that died. */
export const isSuspect = (state: StreamState): boolean => state.last < state.suspectsTo;

export const hasLiveLease = (state: StreamState, nowMs: number): boolean =>
  state.lease !== null && nowMs < state.lease.untilMs;

/** A visit should work on the stream now. */
export const isDue = (state: StreamState, nowMs: number): boolean =>
  state.blocked === null && state.readyAt !== null && state.readyAt <= nowMs && state.nextTryAt <= nowMs;

export type Range = Readonly<{ from: number; to: number }>;

/** 100 ranges are about 5 KB of the stream's document, which is read with every message. */
export const MAX_RANGES = 100;

/**
 * `range` begins after all others. Neighbours become one. Beyond the limit the two oldest become one together with
 * what lies between them: a late copy of a number that ran there is then a dead letter instead of a stale ack, which
 * loses nothing. The other way round, a message that never ran would be acknowledged.
 */
export function addRange(ranges: readonly Range[], range: Range): readonly Range[] {
  const before = ranges.at(-1);
  const joined =
    before !== undefined && before.to + 1 === range.from
      ? [...ranges.slice(0, -1), { from: before.from, to: range.to }]
      : [...ranges, range];
  const [first, second, ...rest] = joined;
  if (joined.length <= MAX_RANGES || first === undefined || second === undefined) return joined;
  return [{ from: first.from, to: second.to }, ...rest];
}
