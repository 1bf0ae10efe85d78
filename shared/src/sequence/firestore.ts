/**
 * Counters in Firestore, one document per key. Publishers in other languages can take numbers from the same ones:
 *
 *   document   <collection>/<id>, collection "pubsub-guarantees-counters" unless configured
 *   id         URL-safe base64 without padding of SHA-256 over the scope, if there is one, and the key, each preceded
 *              by its length in bytes of UTF-8, in decimal, and a colon. Key "orders": SHA-256 of "6:orders"
 *   fields     v = 1 · next = the next number to hand out, from 1 · epoch = any text, chosen once when the document
 *              is created, sent as `sequenceEpoch` · requests, outboxed = written by this library (the last caller's;
 *              the last number with a row in the outbox), left as they are by others
 *   rule       in one transaction: read; take `next` (1 if there is no document); write `next + 1`. Or without one, if
 *              the write names the update time that was read, and a new document is created
 *
 * It has no expiry: a counter that is deleted begins again under another epoch, which consumers refuse visibly.
 */
import type { DocumentReference, Firestore } from '@google-cloud/firestore';
import { TransientError } from '../errors.ts';
import { sameFirestore } from '../firestore/copy.ts';
import { hashOf, identifierHash } from '../hash.ts';
import {
  type Counter,
  type CounterStore,
  type NumberRange,
  type NumberRequest,
  taken,
} from './counter-store.ts';
import { CALL_SHAPE, boundedCalls, type CallOptions } from '../firestore/calls.ts';
import { isContention, isRefused } from '../firestore/errors.ts';
import { checkOptions, text } from '../options.ts';

export type FirestoreCountersOptions = CallOptions &
  Readonly<{
    /** Default `pubsub-guarantees-counters`. */
    collection?: string;
    /** Part of the document's name: separates counters of equal keys, for example of two topics (default: none). */
    scope?: string;
  }>;

const VERSION = 1;

/** Where the counter of a key is stored. */
export function counterDocuments(
  firestore: Firestore,
  options: Pick<FirestoreCountersOptions, 'collection' | 'scope'>,
): (key: string) => DocumentReference {
  const { collection = 'pubsub-guarantees-counters', scope } = options;
  const client = sameFirestore(firestore);
  return (key) => client.collection(collection).doc(scope === undefined ? hashOf(key) : hashOf(scope, key));
}

/** Tries without a lock before a transaction: among four processes that go on and on, few ever need one. */
const LONE_ROUNDS = 10;

/**
 * The caller owns `firestore` and closes it. Throws ConfigError for a client of another copy of its package.
 *
 * Numbers are taken in a transaction. Transactions that have all read a counter may wait for each other until their locks
 * time out: once one was run again, this process first tries without locks. It reads the counter, and writes it under the
 * version that it read; the request that comes second learns at once that it lost. What has lost too often is a
 * transaction again, which such writes wait for.
 *
 * @example
 * const numbers = sequencer(firestoreCounters(new Firestore(), { scope: 'orders' }));
 */
export function firestoreCounters(
  firestore: Firestore,
  options: FirestoreCountersOptions = {},
): CounterStore {
  sameFirestore(firestore);
  checkOptions<FirestoreCountersOptions>(options, { ...CALL_SHAPE, collection: text, scope: text });
  const calls = boundedCalls(options);
  const documentOf = counterDocuments(firestore, options);

  // Whether a transaction of ours was run again, so that others are likely to be at the same counters.
  let meetsOthers = false;

  /** Undefined: this write was refused, most likely because another publisher came first. */
  const takenAlone = async (
    document: DocumentReference,
    request: NumberRequest,
    alive: () => void,
  ): Promise<NumberRange | undefined> => {
    const snapshot = await document.get();
    const { range, counter } = taken(counterOf(snapshot.data(), document.path), request);
    if (counter === undefined) return range;
    const { updateTime } = snapshot;
    const batch = firestore.batch();
    if (updateTime !== undefined) batch.update(document, changed(counter), { lastUpdateTime: updateTime });
    else batch.create(document, created(counter));
    alive();
    try {
      await batch.commit();
      return range;
    } catch (error) {
      // The client repeats a commit whose reply was lost. If that was applied, the next read finds this request.
      if (isRefused(error) || isContention(error)) return undefined;
      throw error;
    }
  };

  return {
    async take(key, request) {
      const document = documentOf(key);
      // The client runs a transaction again after a lost reply: an earlier attempt may be what took the numbers.
      let mine: NumberRange | undefined;
      let sent = false;
      let unseen = false;
      let runs = 0;
      try {
        return await calls.transaction('taking of sequence numbers', async (alive) => {
          for (let left = meetsOthers ? LONE_ROUNDS : 0; left > 0; left -= 1) {
            alive();
            unseen = sent;
            const range = await takenAlone(document, request, alive);
            if (range !== undefined) return range;
            // It may be applied all the same: the client repeats what has no reply. The next read shows it.
            sent = true;
          }
          return firestore.runTransaction(
            async (transaction) => {
              alive();
              meetsOthers ||= runs > 0;
              runs += 1;
              unseen = sent;
              const snapshot = await transaction.get(document);
              const { range, counter } = taken(counterOf(snapshot.data(), document.path), request);
              unseen = false;
              if (counter === undefined) mine = range;
              else sent = true;
              if (counter !== undefined && snapshot.exists) transaction.update(document, changed(counter));
              else if (counter !== undefined) transaction.create(document, created(counter));
              alive();
              return range;
            },
            { maxAttempts: calls.maxAttempts },
          );
        });
      } catch (error) {
        if (mine !== undefined) return mine;
        if (unseen || !isContention(error)) throw error;
        const text = `other publishers took numbers of sequenceKey ${identifierHash(key)} each time`;
        throw new TransientError('SEQUENCE_CONTENTION', text, { cause: error });
      }
    },
  };
}

/** Throws TransientError `UNREADABLE_COUNTER`: no number is taken from what is not exactly a counter. */
export function counterOf(
  data: Readonly<Record<string, unknown>> | undefined,
  path: string,
): Counter | undefined {
  if (data === undefined) return undefined;
  const { v, next, epoch, requests = [] } = data;
  if (v === VERSION && Number.isSafeInteger(next) && typeof epoch === 'string') {
    return { epoch, next: next as number, requests: requests as Counter['requests'] };
  }
  throw new TransientError(
    'UNREADABLE_COUNTER',
    `document ${path} is no counter; accepted: v = ${VERSION}, next a whole number, epoch a text`,
  );
}

const changed = (counter: Counter) => ({ next: counter.next, requests: stored(counter) });
const created = (counter: Counter) => ({ v: VERSION, epoch: counter.epoch, ...changed(counter) });

const stored = (counter: Counter): Readonly<{ id: string; first: number }>[] =>
  counter.requests.map((request) => ({ ...request }));
