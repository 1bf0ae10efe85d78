/**
 * Streams, patches and held messages that tests of a store are made of.
 */
import { randomUUID } from 'node:crypto';
import type { StreamFields, StreamPatch } from '../stream-state.ts';
import type { HeldMessage, StreamRef } from '../stream-store.ts';

export const newStream = (key = 'k'): StreamRef => ({ consumer: randomUUID(), source: 's', key });

/** A patch with an ID that no other one has. */
export const patchOf = (fields: StreamFields): StreamPatch => ({
  ...fields,
  commit: randomUUID(),
});

export const heldAs = (number: number): HeldMessage => ({
  number,
  hash: `hash of ${number}`,
  source: 'projects/p/subscriptions/s',
  message: Buffer.from([number % 256]),
});
