/**
 * Streams, patches and held messages that tests of a store are made of.
 */
import { randomUUID } from 'node:crypto';
import { freshStream, type StreamFields, type StreamPatch } from '../order/stream-state.ts';
import type { HeldMessage, StreamRef, StreamStore } from '../order/stream-store.ts';

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

export const CONSUMER = 'orders';

/** A stream of `CONSUMER` in a memory store, with what is held for it. */
export async function made(
  store: StreamStore,
  fields: StreamFields = {},
  numbers: readonly number[] = [],
  key = 'k',
): Promise<StreamRef> {
  const ref = { consumer: CONSUMER, source: 's', key };
  const state = freshStream(1);
  const patch = patchOf({ held: numbers.length, ...fields });
  await store.commit(ref, { version: undefined, state }, { patch, create: numbers.map(heldAs) });
  return ref;
}
