/**
 * Claims in Firestore, one document a key, by the protocol of document-claims.ts. A lost reply, a late request and a wrong
 * clock are what it expects; a crash costs a rerun after the lease.
 *
 * Cost: a fresh message is two writes and no read, a duplicate a failed create and a read.
 */
import type { Firestore } from '@google-cloud/firestore';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { sameFirestore } from '../firestore/copy.ts';
import { checkOptions, clock as aClock, durationFrom, text } from '../options.ts';
import type { ClaimStore } from './claim-store.ts';
import { documentClaims } from './document-claims.ts';
import { firestoreDocuments } from './firestore-documents.ts';

export { type FirestoreInboxOptions, firestoreInbox } from './firestore-inbox.ts';

export type FirestoreClaimsOptions = Readonly<{
  /** Default `pubsub-guarantees-claims`. Wants a TTL policy on `expiresAt`, and no single-field indexes. */
  collection?: string;
  /**
   * Bound on each operation, with all its calls (default `5s`, at least `1ms`): the client itself waits for minutes
   * when its server is down. With twice of it above the lease a claim may have run out when the store answers.
   */
  callTimeout?: Duration;
  /** Default: the machine's. */
  clock?: Clock;
}>;

/**
 * The caller makes the client and terminates it. Throws ConfigError for a client of another copy of its package.
 *
 * @example
 * const once = dedup(firestoreClaims(new Firestore()));
 */
export function firestoreClaims(firestore: Firestore, options: FirestoreClaimsOptions = {}): ClaimStore {
  const client = sameFirestore(firestore);
  checkOptions<FirestoreClaimsOptions>(options, {
    collection: text,
    callTimeout: durationFrom('1ms'),
    clock: aClock,
  });
  const { collection = 'pubsub-guarantees-claims', callTimeout = '5s', clock = systemClock() } = options;
  const claims = client.collection(collection);
  return documentClaims(firestoreDocuments(claims, clock), clock, toMilliseconds(callTimeout, 'callTimeout'));
}
