/**
 * The sweep of payloads in Firestore: what has expired, where no TTL policy got there first, and chunks whose put never
 * reached its manifest. A document is removed only as it was found, so what is stored anew at the same time stays.
 *
 * A sweep that is ended goes on behind the last document that it tried, when it is called again: documents that cannot
 * be removed do not keep it from the rest.
 */
import type { CollectionReference, Query, QueryDocumentSnapshot } from '@google-cloud/firestore';
import { FieldValue } from '@google-cloud/firestore';
import { type Calls } from '../firestore/calls.ts';
import { isRefused } from '../firestore/errors.ts';
import { forEachAtMost } from '../async/pool.ts';
import { timestampAt } from '../firestore/timestamps.ts';
import type { Tally } from '../sweep.ts';
import { manifestIn } from './firestore-documents.ts';
import { GRACE_MS, type PayloadSweep, UNFINISHED_MS } from './payload-store.ts';

/** Documents per query, without their bytes. */
const PAGE = 100;
const WRITES_AT_ONCE = 8;

type Collections = Readonly<{ manifests: CollectionReference; chunks: CollectionReference }>;

/** Where the last sweep was ended: in which of its steps, and behind which document. */
type Ended = Readonly<{ step: number; after: QueryDocumentSnapshot }>;

/** The sweep of one payload store, which remembers where it was ended. */
export function payloadSweep({ manifests, chunks }: Collections, calls: Calls): PayloadSweep {
  let ended: Ended | undefined;

  const sweepFrom = async (from: Ended | undefined, total: Tally, signal: AbortSignal): Promise<void> => {
    const now = calls.clock.now();

    const remove = async (document: QueryDocumentSnapshot): Promise<void> => {
      await calls.call('removal', () => document.ref.delete({ lastUpdateTime: document.updateTime }));
      total.done += 1;
    };
    /** A chunk that was begun long ago. Where its payload is there after all, another put had finished it. */
    const settle = async (chunk: QueryDocumentSnapshot): Promise<void> => {
      const id: unknown = chunk.get('payload');
      if (typeof id !== 'string' || id === '') return remove(chunk);
      const found = await calls.call('read of a manifest', async () =>
        manifestIn(await manifests.doc(id).get()),
      );
      if (found.kind !== 'found') return remove(chunk);
      const { isDone, expiresAtMs } = found.manifest;
      const fields = {
        unfinishedAt: FieldValue.delete(),
        expiresAt: timestampAt(isDone ? now + GRACE_MS : expiresAtMs),
      };
      await calls.call('end of a chunk', () =>
        chunk.ref.update(fields, { lastUpdateTime: chunk.updateTime }),
      );
    };

    const due = (of: CollectionReference, field: string, untilMs: number): Query =>
      of.where(field, '<=', timestampAt(untilMs)).orderBy(field).select(field, 'payload');
    const steps: readonly (readonly [Query, (document: QueryDocumentSnapshot) => Promise<void>])[] = [
      [due(chunks, 'expiresAt', now), remove],
      [due(chunks, 'unfinishedAt', now - UNFINISHED_MS), settle],
      [due(manifests, 'expiresAt', now), remove],
    ];
    for (const [step, [query, work]] of steps.entries()) {
      if (signal.aborted) return;
      if (step < (from?.step ?? 0)) continue;
      const start = from?.step === step ? query.startAfter(from.after) : query;
      const last = await pages({ query, start, work }, calls, signal, total);
      if (last === undefined) continue;
      ended = { step, after: last };
      return;
    }
    ended = undefined;
  };

  return async ({ signal }) => {
    const total: Tally = { due: 0, done: 0, failed: 0, isWhole: false };
    const from = ended;
    await sweepFrom(from, total, signal);
    // What comes before the place at which it began, unless it was ended again.
    if (from !== undefined && !signal.aborted) await sweepFrom(undefined, total, signal);
    total.isWhole = ended === undefined && !signal.aborted;
    return total;
  };
}

type Step = Readonly<{
  query: Query;
  /** The same, from where it begins. */
  start: Query;
  work: (document: QueryDocumentSnapshot) => Promise<void>;
}>;

/**
 * Page after page to the end: undefined. Ended before: the last document that was tried. What could not be worked on is
 * met again by a later sweep.
 */
async function pages(
  { query, start, work }: Step,
  calls: Calls,
  signal: AbortSignal,
  total: Tally,
): Promise<QueryDocumentSnapshot | undefined> {
  let from = start;
  let tried: QueryDocumentSnapshot | undefined;
  while (!signal.aborted) {
    const { docs } = await calls.call('query of payloads', () => from.limit(PAGE).get());
    await forEachAtMost(WRITES_AT_ONCE, docs, async (document) => {
      if (signal.aborted) return;
      // They are begun in their order.
      tried = document;
      total.due += 1;
      try {
        await work(document);
      } catch (error) {
        // Stored anew or removed by another process: nothing is left to do.
        if (!isRefused(error)) total.failed += 1;
      }
    });
    const last = docs.at(-1);
    if (last === undefined || (docs.length < PAGE && tried === last)) return undefined;
    from = query.startAfter(last);
  }
  return tried;
}
