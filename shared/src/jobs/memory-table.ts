/**
 * The tables of jobs in memory, shared by the stores of several processes of a test: what is here is committed.
 *
 * Each function changes them in one turn of the event loop, as one commit does.
 */
import { type Change, type JobRecord, relaunch } from './decide.ts';
import type { Json, JobError, JobState } from './job.ts';
import type { Vitals } from './health.ts';
import { MOST_COUNTED } from './job-store.ts';
import { hashOf } from '../hash.ts';
import { memoryTable, type Table } from '../outbox/memory-table.ts';

type LoggedRun = Readonly<{
  id: number;
  role: string;
  kind: string;
  state: JobState;
  token: number;
  attempts: number;
  crashes: number;
  createdMs: number;
  readyMs: number;
  claimedMs: number;
  finishedMs: number;
}>;

/** `expiresMs` is absent while its job is unfinished, or dead. */
export type KeyRecord = Readonly<{ fingerprint: string; jobId: number; expiresMs?: number }>;
type DeadRecord = Readonly<{ record: JobRecord; reason: JobError; diedMs: number }>;
type Sample = Readonly<{ atMs: number; backlog: number }>;
export type Start = Readonly<{ role: string; limitKey: string | undefined; atMs: number }>;

export type JobTable = Readonly<{
  jobs: Map<number, JobRecord>;
  keys: Map<string, KeyRecord>;
  dead: Map<number, DeadRecord>;
  log: LoggedRun[];
  samples: Sample[];
  /** Claims of roles whose starts are limited. */
  starts: Start[];
  /** Up to when each recurrence is decided, by its ID as JSON. */
  recurrences: Map<string, number>;
  /** Keys that an open transaction is writing, until its end. */
  locks: Map<string, Promise<void>>;
  listeners: Set<(role?: string) => void>;
  /** Values of callers' own. */
  values: Map<string, unknown>;
  outbox: Table;
  /** Each is another. */
  nextId(): number;
}>;

export function memoryJobTable(): JobTable {
  let ids = 0;
  return {
    jobs: new Map(),
    keys: new Map(),
    dead: new Map(),
    log: [],
    samples: [],
    starts: [],
    recurrences: new Map(),
    locks: new Map(),
    listeners: new Set(),
    values: new Map(),
    outbox: memoryTable(),
    nextId: () => (ids += 1),
  };
}

const DAY_MS = 86_400_000;
/** How long the key of a job that has ended answers `repeated`. */
const KEY_RETENTION_MS = 7 * DAY_MS;
export const LOG_RETENTION_MS = 14 * DAY_MS;
export const SAMPLE_RETENTION_MS = DAY_MS;
export const SAMPLE_EVERY_MS = 60_000;

export const keyHash = (key: string): string => hashOf('job key', key);

export const fingerprintOf = (job: Readonly<{ role: string; kind: string; payload: Json }>): string =>
  hashOf(job.role, job.kind, canonical(job.payload));

/** The same text for the same value, in whatever order its members were written: as jsonb has it. */
function canonical(value: Json | undefined): string {
  if (Array.isArray(value)) return `[${value.map((item: Json) => canonical(item)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value as Readonly<Record<string, Json | undefined>>)
    .filter(([, member]) => member !== undefined)
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`;
}

export function apply(table: JobTable, change: Change, nowMs: number): JobState {
  const { record } = change;
  if (change.kind === 'kept') {
    table.jobs.set(record.id, record);
    return record.state;
  }
  table.jobs.delete(record.id);
  const { id, role, kind, token, attempts, crashes, createdMs, runAtMs, claimedMs } = record;
  const times = { createdMs, readyMs: runAtMs, claimedMs, finishedMs: nowMs };
  table.log.push({ id, role, kind, state: change.state, token, attempts, crashes, ...times });
  if (change.state === 'dead') table.dead.set(id, { record, reason: change.reason, diedMs: nowMs });
  else expireKey(table, record, nowMs);
  return change.state;
}

export function expireKey(table: JobTable, { key, id }: Pick<JobRecord, 'key' | 'id'>, nowMs: number): void {
  const found = key === undefined ? undefined : table.keys.get(key);
  if (key === undefined || found?.jobId !== id) return;
  table.keys.set(key, { ...found, expiresMs: nowMs + KEY_RETENTION_MS });
}

export function revive(table: JobTable, id: number, nowMs: number): boolean {
  const found = table.dead.get(id);
  if (found === undefined) return false;
  table.dead.delete(id);
  table.jobs.set(id, relaunch(found.record, nowMs));
  return true;
}

/** Where the job of a key stands. */
export function stateOf(table: JobTable, id: number): JobState {
  const found = table.jobs.get(id);
  if (found !== undefined) return found.state;
  if (table.dead.has(id)) return 'dead';
  return table.log.findLast((row) => row.id === id)?.state ?? 'done';
}

export function vitalsOf(table: JobTable, nowMs: number, windowMs: number): Vitals {
  const backlog = [...table.jobs.values()].filter(
    ({ state, runAtMs }) => state === 'ready' || (state === 'waiting' && runAtMs <= nowMs),
  ).length;
  const samples = table.samples.filter(({ atMs }) => atMs > nowMs - windowMs);
  const sum = samples.reduce((total, sample) => total + sample.backlog, 0);
  const waits = table.log
    .filter(({ finishedMs, claimedMs }) => claimedMs > 0 && finishedMs > nowMs - windowMs)
    .map(({ claimedMs, readyMs }) => claimedMs - readyMs)
    .toSorted((one, other) => one - other);
  return {
    backlog: Math.min(MOST_COUNTED, backlog),
    meanBacklog: samples.length === 0 ? undefined : sum / samples.length,
    coveredMs: samples.length * SAMPLE_EVERY_MS,
    pickUpP95Ms: waits[Math.max(0, Math.ceil(waits.length * 0.95) - 1)],
    dead: Math.min(MOST_COUNTED, table.dead.size),
    snapshot: undefined,
    unseen: [],
  };
}

/** Removes what matches and answers how much that was. */
export function drop<Item>(list: Item[], matches: (item: Item) => boolean): number {
  const kept = list.filter((item) => !matches(item));
  const dropped = list.length - kept.length;
  list.splice(0, list.length, ...kept);
  return dropped;
}
