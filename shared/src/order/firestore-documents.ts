/**
 * How keys and held messages stand in Firestore, and back.
 *
 * A lease's end is never stored: `leasedAt` is the server's commit time, and readers add the length and compare with
 * their read time, so no worker's clock takes part. `readyAt` and the other times are worked out from read times.
 */
import { FieldValue, Timestamp, type DocumentData, type DocumentSnapshot } from '@google-cloud/firestore';
import { TransientError } from '../errors.ts';
import { type Fields, HELD_FIELDS, KEY_FIELDS, wrongField } from './firestore-fields.ts';
import type { KeyPatch, KeyState } from './key-state.ts';
import type { PayloadRef } from '../payload/payload-room.ts';
import type { HeldMessage, KeyRef } from './order-store.ts';

/**
 * The format of key documents. A reader of version 1 does not know that a key stands still, or that a range was given
 * up, and would run past it; it refuses a document once one of the two was written. Everything else is as in 1.
 */
const KEY_VERSION = 2;
const FIRST_VERSION = 1;
/** Of a held message; one whose content waits in the payload room is nothing for a reader of version 1. */
const HELD_VERSION = 2;

export function keyFields(patch: KeyPatch): DocumentData {
  const { lease, nextTryAt, waitingSince, repairedAt, readyAt, run, halted, skipped, ring, ...plain } = patch;
  return {
    ...plain,
    ...((halted !== undefined || skipped !== undefined) && { v: KEY_VERSION }),
    ...(repairedAt !== undefined && { repairedAt: time(repairedAt) }),
    ...(halted !== undefined && {
      halted: halted && { at: time(halted.atMs), code: halted.code, text: halted.text },
    }),
    ...(lease !== undefined && {
      owner: lease?.owner ?? null,
      leaseMs: lease?.lengthMs ?? 0,
      leasedAt: lease === null ? null : FieldValue.serverTimestamp(),
    }),
    ...(nextTryAt !== undefined && { nextTryAt: time(nextTryAt) }),
    ...(waitingSince !== undefined && { waitingSince: time(waitingSince) }),
    ...(readyAt !== undefined && { readyAt: time(readyAt) }),
    ...(run !== undefined && { run: run && { ...run } }),
    ...(skipped !== undefined && { skipped: skipped.map((range) => ({ ...range })) }),
    // One string: a list would be one index entry for each element.
    ...(ring !== undefined && { ring: ring.join(' ') }),
  };
}

/** A whole document for a key that has none. */
export function newKeyFields(ref: KeyRef, base: KeyState, patch: KeyPatch): DocumentData {
  const { lease: _, ...fields } = base;
  return {
    ...keyFields({ ...fields, lease: null, ...patch }),
    v:
      patch.halted !== undefined || patch.skipped !== undefined || base.skipped.length > 0
        ? KEY_VERSION
        : FIRST_VERSION,
    consumer: ref.consumer,
    key: ref.key,
  };
}

/**
 * Throws TransientError `UNREADABLE_STATE` for another format, and for one that lacks what a decision rests on: the
 * messages wait until a reader knows it, or somebody has mended it. A guess would skip or repeat numbers.
 */
export function keyState(snapshot: DocumentSnapshot): KeyState {
  const data = fieldsOf(snapshot, KEY_FIELDS, [FIRST_VERSION, KEY_VERSION]);
  const leasedAt = data.leasedAt instanceof Timestamp ? micros(data.leasedAt) : undefined;
  return {
    last: data.last as number,
    epoch: (data.epoch as string | null | undefined) ?? null,
    lease:
      leasedAt === undefined || data.owner === null
        ? null
        : { owner: data.owner as string, untilMs: Math.ceil(leasedAt / 1_000) + (data.leaseMs as number) },
    attempts: data.attempts as number,
    nextTryAt: millis(data.nextTryAt) ?? 0,
    waitingSince: millis(data.waitingSince),
    gapAt: data.gapAt as number | null,
    repairedAt: millis(data.repairedAt),
    readyAt: millis(data.readyAt),
    halted: haltOf(data.halted),
    run: data.run as KeyState['run'],
    skipped: data.skipped as KeyState['skipped'],
    ring: data.ring === '' ? [] : (data.ring as string).split(' '),
    ...(data.opening !== undefined && { opening: data.opening as number }),
  };
}

const haltOf = (value: unknown): KeyState['halted'] => {
  if (value === null || value === undefined) return null;
  const { at, code, text } = value as Readonly<{ at: Timestamp; code: string; text: string }>;
  return { code, text, atMs: millisOf(at) };
};

export const heldFields = (held: HeldMessage): DocumentData => ({
  v: held.payload === undefined ? FIRST_VERSION : HELD_VERSION,
  number: held.number,
  hash: held.hash,
  source: held.source,
  message: Buffer.from(held.message),
  ...(held.payload !== undefined && { payload: { ...held.payload } }),
});

/** Throws as `keyState` does. */
export function heldMessage(snapshot: DocumentSnapshot): HeldMessage {
  const data = fieldsOf(snapshot, HELD_FIELDS, [FIRST_VERSION, HELD_VERSION]);
  return {
    number: data.number as number,
    hash: data.hash as string,
    source: data.source as string,
    message: data.message as Uint8Array,
    ...(data.payload !== undefined && { payload: data.payload as PayloadRef }),
  };
}

/** Update times have microseconds; a whole number of them fits a double until the year 2255. */
export const versionOf = (updateTime: Timestamp): string => String(micros(updateTime));

export function updateTimeOf(version: string): Timestamp {
  const all = Number(version);
  const seconds = Math.floor(all / 1_000_000);
  return new Timestamp(seconds, (all - seconds * 1_000_000) * 1_000);
}

export const millisOf = (timestamp: Timestamp): number => Math.floor(micros(timestamp) / 1_000);

function fieldsOf(snapshot: DocumentSnapshot, fields: Fields, versions: readonly unknown[]): DocumentData {
  const data = snapshot.data() ?? {};
  if (!versions.includes(data.v)) {
    const accepted = versions.join(' or ');
    throw unreadable(snapshot, `it has format version ${JSON.stringify(data.v)}; accepted: ${accepted}`);
  }
  const wrong = wrongField(fields, data);
  if (wrong === undefined) return data;
  throw unreadable(snapshot, `its field ${wrong} has no value of its kind`);
}

export const unreadable = (snapshot: DocumentSnapshot, text: string): TransientError =>
  new TransientError('UNREADABLE_STATE', `document ${snapshot.ref.path} cannot be used: ${text}`);

const micros = ({ seconds, nanoseconds }: Timestamp): number =>
  seconds * 1_000_000 + Math.floor(nanoseconds / 1_000);

const millis = (value: unknown): number | null => (value instanceof Timestamp ? millisOf(value) : null);

/** Rounded up, so that nothing is due before its time. Null and 0 mean "not set" and stand outside every range query. */
const time = (ms: number | null): Timestamp | null =>
  ms === null || ms === 0 ? null : Timestamp.fromMillis(Math.ceil(ms));
