/**
 * How an entry is stored in Firestore, and read back. What its tasks carry is one field of bytes, in the format of task
 * bodies.
 *
 * `expiresAt` serves the TTL policy alone and is there exactly once an entry has ended. Every time comes from a read time
 * of the store, or from a message's publish time.
 */
import { type DocumentData, type DocumentSnapshot, Timestamp } from '@google-cloud/firestore';
import { timestampAt } from '../firestore/timestamps.ts';
import { decodeDelayed, encodeDelayed } from '../tasks/task-body.ts';
import { textOf, TransientError } from '../errors.ts';
import {
  type Entry,
  type EntryState,
  expiresAtMs,
  type LedgerTimes,
  type Run,
  type Version,
} from './entry.ts';
import { sortKeys } from './sort-keys.ts';

/** Format of the documents. Those of 1 are in one range of `sweep` for all shards, where no sweep looks. */
const VERSION = 2;

const STATES: ReadonlySet<unknown> = new Set<EntryState>([
  'unscheduled',
  'scheduled',
  'firing',
  'delivered',
  'deadLettered',
  'refused',
  'cancelled',
]);

/** The whole document: what is not in it is gone. */
export function fieldsOf(id: string, entry: Entry, times: LedgerTimes, shards: number): DocumentData {
  const { ref, version, floor, state, generation, attempt, dueTimeMs, delayed, firing, atMs } = entry;
  const { inFlight = [], tried } = entry;
  const endsMs = expiresAtMs(entry, times);
  return {
    v: VERSION,
    consumer: ref.consumer,
    source: ref.source,
    key: ref.key ?? null,
    identity: ref.identity ?? null,
    state,
    version: { ...version },
    floor: floor === undefined ? null : { ...floor },
    generation,
    attempt,
    dueAt: dueTimeMs === undefined ? null : timestampAt(dueTimeMs),
    delayed: delayed === undefined ? null : encodeDelayed(delayed),
    token: firing?.token ?? null,
    until: firing === undefined ? null : timestampAt(firing.untilMs),
    inFlight: inFlight.map((run) => ({ ...run })),
    tried: tried === undefined ? null : { ...tried },
    at: timestampAt(atMs),
    ...sortKeys(id, entry, times, shards),
    // Always there, or a TTL policy would act on what a replaced record left behind.
    expiresAt: endsMs === undefined ? null : timestampAt(endsMs),
  };
}

/** Throws TransientError `UNREADABLE_ENTRY`: what is not exactly ours is neither fired nor overwritten. */
export function entryOf(snapshot: DocumentSnapshot): Entry | undefined {
  const data = snapshot.data();
  if (data === undefined) return undefined;
  const wrong = wrongField(data);
  if (wrong !== undefined) throw unreadable(snapshot, wrong);
  return {
    ref: {
      consumer: data['consumer'],
      source: data['source'],
      ...(data['key'] !== null && { key: data['key'] }),
      ...(data['identity'] !== null && { identity: data['identity'] }),
    },
    version: data['version'],
    ...(data['floor'] !== null && { floor: data['floor'] }),
    state: data['state'],
    generation: data['generation'],
    attempt: data['attempt'],
    ...(data['dueAt'] !== null && { dueTimeMs: millisOf(data['dueAt']) }),
    ...(data['delayed'] !== null && { delayed: delayedOf(snapshot, data['delayed']) }),
    ...(data['token'] !== null && { firing: { token: data['token'], untilMs: millisOf(data['until']) } }),
    ...(data['inFlight'].length > 0 && { inFlight: data['inFlight'] }),
    ...(data['tried'] !== null && { tried: data['tried'] }),
    atMs: millisOf(data['at']),
  };
}

export const millisOf = (time: Timestamp): number => time.toMillis();

function wrongField(data: DocumentData): string | undefined {
  if (data['v'] !== VERSION) return `format version ${String(data['v'])}; accepted: ${VERSION}`;
  const isPending = ['unscheduled', 'scheduled', 'firing'].includes(data['state']);
  const checks: Readonly<Record<string, boolean>> = {
    consumer: typeof data['consumer'] === 'string',
    source: typeof data['source'] === 'string',
    key: isTextOrNull(data['key']),
    identity: isTextOrNull(data['identity']),
    state: STATES.has(data['state']),
    version: isVersion(data['version']),
    floor: data['floor'] === null || isVersion(data['floor']),
    generation: typeof data['generation'] === 'string' && data['generation'] !== '',
    attempt: Number.isSafeInteger(data['attempt']) && data['attempt'] >= 0,
    dueAt: data['dueAt'] === null || data['dueAt'] instanceof Timestamp,
    delayed: isPending
      ? data['delayed'] instanceof Uint8Array
      : data['delayed'] === null || (data['state'] === 'refused' && data['delayed'] instanceof Uint8Array),
    token: data['state'] === 'firing' ? typeof data['token'] === 'string' : data['token'] === null,
    until: data['state'] === 'firing' ? data['until'] instanceof Timestamp : data['until'] === null,
    inFlight: Array.isArray(data['inFlight']) && data['inFlight'].every(isRun),
    tried: data['tried'] === null || isTried(data['tried']),
    at: data['at'] instanceof Timestamp,
  };
  const wrong = Object.entries(checks).find(([, isRight]) => !isRight)?.[0];
  return wrong === undefined ? undefined : `its field ${wrong} has no value of its kind`;
}

const isTextOrNull = (value: unknown): boolean => value === null || typeof value === 'string';

function isRun(value: unknown): value is Run {
  const { token, untilMs } = (value ?? {}) as Partial<Record<keyof Run, unknown>>;
  return typeof token === 'string' && Number.isFinite(untilMs);
}

function isTried(value: unknown): value is Entry['tried'] {
  const { times, atMs } = (value ?? {}) as Partial<Record<'times' | 'atMs', unknown>>;
  return Number.isSafeInteger(times) && Number.isFinite(atMs);
}

function isVersion(value: unknown): value is Version {
  const { atMs, id } = (value ?? {}) as Partial<Record<keyof Version, unknown>>;
  return Number.isFinite(atMs) && typeof id === 'string';
}

function delayedOf(snapshot: DocumentSnapshot, bytes: Uint8Array) {
  try {
    return decodeDelayed(bytes);
  } catch (error) {
    throw unreadable(snapshot, textOf(error));
  }
}

const unreadable = (snapshot: DocumentSnapshot, text: string): TransientError =>
  new TransientError('UNREADABLE_ENTRY', `document ${snapshot.ref.path} cannot be used: ${text}`);
