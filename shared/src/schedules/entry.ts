/**
 * The record of one pending delivery that can be replaced or cancelled, and what follows from its fields alone.
 *
 * An entry never expires while there is work in it. One that has ended stays as long as a message about it may come
 * again, or a redelivery would schedule it anew.
 */
import { pauseAfter } from '../async/backoff.ts';
import type { Delayed } from '../tasks/task-body.ts';
import { hashOf } from '../hash.ts';

/** Which write: the latest wins, in whatever order writers arrive. */
export type Version = Readonly<{
  /**
   * Of a message the earlier of `originPublishTime` and the server's publish time; of a program the store's read time.
   * Milliseconds since the epoch.
   */
  atMs: number;
  /** The message's ID, or a random one. Decides between equal times. */
  id: string;
}>;

export type ScheduleRef = Readonly<{
  consumer: string;
  source: string;
  /** The business key; absent on the entry of a message that has none, whose `identity` names it. */
  key?: string;
  identity?: string;
}>;

export type EntryState =
  /** Committed; whether it has a task is not known yet. */
  | 'unscheduled'
  /** It has a task, or its message will come again until it has one. */
  | 'scheduled'
  /** A republisher is publishing it. */
  | 'firing'
  | 'delivered'
  | 'deadLettered'
  /**
   * The queue will never take its task. Where a message asked for it, the delivery of that message dead-letters it, now
   * or when it comes again; otherwise the entry keeps what it was to deliver, until it is reopened, replaced, cancelled
   * or expires.
   */
  | 'refused'
  | 'cancelled';

/** A republisher at work on an entry: no other run fires it until then. */
export type Run = Readonly<{ token: string; untilMs: number }>;

export type Entry = Readonly<{
  ref: ScheduleRef;
  version: Version;
  /** Of a cancel that came too late: what is older stays without effect. */
  floor?: Version;
  state: EntryState;
  /** Random, new with every schedule: what a task must name to fire. */
  generation: string;
  /** Raised whenever the task was lost, so that the next one meets no name that the queue remembers. */
  attempt: number;
  /** Sweeps that could not give it a task, and when the last one tried. None once it has one. */
  tried?: Readonly<{ times: number; atMs: number }>;
  /** While pending; for information afterwards. */
  dueTimeMs?: number;
  /** What its tasks carry: there while the entry is pending, and while it is refused and nothing else has the message. */
  delayed?: Delayed;
  firing?: Run;
  /** Runs of schedules that were replaced while they were firing: they may still publish until then. */
  inFlight?: readonly Run[];
  /** The store's time of the last schedule, attempt or end. */
  atMs: number;
}>;

export type LedgerTimes = Readonly<{
  /** How long a republisher has an entry to itself while it publishes. */
  firingLeaseMs: number;
  /** When an entry without a task gets one; twice as long after each sweep that could not give it one, up to 128 times. */
  unscheduledGraceMs: number;
  /**
   * When a task counts as lost: longer after its time than the queue's own backlog ever is. Twice as long after each
   * attempt, up to 128 times: in an outage tasks are late and not lost, and each attempt is a task more in the queue.
   */
  lostGraceMs: number;
  /** How long the record of an end is kept: at least the source's retention, seek included. */
  endedRetentionMs: number;
}>;

/**
 * What an entry holds of a message: the rest of a document of 1 MiB is left for its other fields, and for a payload
 * store to take what is larger. Also what is written anew with every change of the entry.
 */
export const MAX_ENTRY_BYTES = 500_000;

/** Name of its document, and the first part of every task name that it leads to. */
export const entryId = ({ consumer, source, key, identity }: ScheduleRef): string =>
  key === undefined
    ? hashOf(consumer, source, 'identity', identity ?? '')
    : hashOf(consumer, source, 'scheduleKey', key);

/** Negative, zero or positive. Shorter IDs first: those of one server are numbers that grow. */
export function compareVersions(one: Version, other: Version): number {
  if (one.atMs !== other.atMs) return one.atMs - other.atMs;
  if (one.id.length !== other.id.length) return one.id.length - other.id.length;
  if (one.id === other.id) return 0;
  return one.id < other.id ? -1 : 1;
}

/** What a newer writer must be newer than. */
export function topVersion({ version, floor }: Pick<Entry, 'version' | 'floor'>): Version {
  return floor !== undefined && compareVersions(floor, version) > 0 ? floor : version;
}

/** A program's version: newer than everything that the store has, whatever the program's clock says. */
export const versionAfter = (entry: Entry | undefined, nowMs: number, id: string): Version => ({
  atMs: Math.max(Math.ceil(nowMs), entry === undefined ? 0 : topVersion(entry).atMs + 1),
  id,
});

export const isPending = ({ state }: Pick<Entry, 'state'>): boolean =>
  state === 'unscheduled' || state === 'scheduled' || state === 'firing';

/** The longest that a publish takes, which begins before its lease ends: the republisher's default, and its limit. */
export const PUBLISH_MS = 30_000;

/** Earlier runs, which the state of this entry does not show, and which may still publish. */
const runsInFlight = ({ inFlight = [] }: Entry, nowMs: number): readonly Run[] =>
  inFlight.filter(({ untilMs }) => untilMs > nowMs);

export const isInFlight = (entry: Entry | undefined, nowMs: number): boolean =>
  entry !== undefined && runsInFlight(entry, nowMs).length > 0;

/** The runs that the entry in its place must list. */
export function runsLeftBy(entry: Entry, nowMs: number): readonly Run[] {
  const { state, firing } = entry;
  const own =
    state === 'firing' && firing !== undefined ? [{ ...firing, untilMs: firing.untilMs + PUBLISH_MS }] : [];
  return runsInFlight({ ...entry, inFlight: [...(entry.inFlight ?? []), ...own] }, nowMs);
}

const MOST_DOUBLINGS = 7;

const grown = (minMs: number, times: number): number =>
  pauseAfter(times + 1, { minMs, maxMs: minMs * 2 ** MOST_DOUBLINGS });

/** When the sweep must look at it unless it has moved on by then; undefined once it has ended. */
export function sweepAtMs(entry: Entry, times: LedgerTimes): number | undefined {
  const { state, atMs, attempt, firing, tried, dueTimeMs = atMs } = entry;
  const lostGraceMs = grown(times.lostGraceMs, attempt);
  switch (state) {
    case 'unscheduled':
      if (tried === undefined) return atMs + times.unscheduledGraceMs;
      return tried.atMs + grown(times.unscheduledGraceMs, tried.times);
    case 'scheduled':
      return Math.max(dueTimeMs, atMs) + lostGraceMs;
    case 'firing':
      return Math.max(firing?.untilMs ?? atMs, atMs) + lostGraceMs;
    case 'delivered':
    case 'deadLettered':
    case 'refused':
    case 'cancelled':
      return undefined;
  }
}

/** When the record may go; undefined while there is work in it. */
export const expiresAtMs = (entry: Entry, { endedRetentionMs }: LedgerTimes): number | undefined =>
  isPending(entry) ? undefined : entry.atMs + endedRetentionMs;
