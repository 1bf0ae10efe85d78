/**
 * The sequencer's counters in Firestore as the place where streams begin. It reads, and writes nothing.
 */
import type { Firestore } from '@google-cloud/firestore';
import type { CounterStart } from './counter-start.ts';
import { boundedCalls } from '../firestore/calls.ts';
import { counterDocuments, counterOf, type FirestoreCountersOptions } from '../sequence/firestore.ts';

/**
 * `collection` and `scope` are those of the publishers' `firestoreCounters` or outbox. `read` rejects with
 * `STORE_UNAVAILABLE`, or with `UNREADABLE_COUNTER` for a document that is no counter. The caller owns `firestore`.
 */
export function firestoreCounterStart(
  firestore: Firestore,
  options: FirestoreCountersOptions = {},
): CounterStart {
  const calls = boundedCalls(options);
  const documentOf = counterDocuments(firestore, options);
  return {
    read: (key) =>
      calls.call('read of a counter', async () => {
        const snapshot = await documentOf(key).get();
        const counter = counterOf(snapshot.data(), snapshot.ref.path);
        return counter && { next: counter.next, epoch: counter.epoch };
      }),
  };
}
