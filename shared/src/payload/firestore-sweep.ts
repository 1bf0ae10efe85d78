/**
 * The sweep of payloads in Firestore: what has expired, where no TTL policy got there first, and chunks whose put never
 * reached its manifest. A document is removed only as it was found, so what somebody stores anew at the same time stays.
 */
import type { CollectionReference, Query, QueryDocumentSnapshot } from '@google-cloud/firestore';
import { FieldValue } from '@google-cloud/firestore';
import { type Calls, isRefused } from '../firestore/calls.ts';
import { forEachAtMost } from './at-most.ts';
import { manifestIn, timestamp } from './firestore-documents.ts';
import { GRACE_MS, type PayloadSweep, UNFINISHED_MS } from './payload-room.ts';

/** Documents per query, without their bytes. */
const PAGE = 100;
const WRITES_AT_ONCE = 8;

type Collections = Readonly<{ manifests: CollectionReference; chunks: CollectionReference }>;
type Total = { -readonly [Field in keyof PayloadSweep]: PayloadSweep[Field] };

export async function sweepPayloads(
  { manifests, chunks }: Collections,
  calls: Calls,
  signal: AbortSignal,
): Promise<PayloadSweep> {
  const total: Total = { removed: 0, failed: 0 };
  const now = calls.clock.now();

  const remove = async (document: QueryDocumentSnapshot): Promise<void> => {
    await calls.call('removal', () => document.ref.delete({ lastUpdateTime: document.updateTime }));
    total.removed += 1;
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
      expiresAt: timestamp(isDone ? now + GRACE_MS : expiresAtMs),
    };
    await calls.call('end of a chunk', () => chunk.ref.update(fields, { lastUpdateTime: chunk.updateTime }));
  };

  const due = (of: CollectionReference, field: string, untilMs: number): Query =>
    of.where(field, '<=', timestamp(untilMs)).orderBy(field).select(field, 'payload');
  const steps: readonly (readonly [Query, (document: QueryDocumentSnapshot) => Promise<void>])[] = [
    [due(chunks, 'expiresAt', now), remove],
    [due(chunks, 'unfinishedAt', now - UNFINISHED_MS), settle],
    [due(manifests, 'expiresAt', now), remove],
  ];
  for (const [query, work] of steps) await pages(query, work, calls, signal, total);
  return total;
}

/** Page after page from the last document on: what could not be worked on is met again by the next sweep. */
async function pages(
  query: Query,
  work: (document: QueryDocumentSnapshot) => Promise<void>,
  calls: Calls,
  signal: AbortSignal,
  total: Total,
): Promise<void> {
  let from = query;
  while (!signal.aborted) {
    const { docs } = await calls.call('query of payloads', () => from.limit(PAGE).get());
    await forEachAtMost(WRITES_AT_ONCE, docs, async (document) => {
      if (signal.aborted) return;
      try {
        await work(document);
      } catch (error) {
        // Stored anew or removed by somebody else: nothing is left to do.
        if (!isRefused(error)) total.failed += 1;
      }
    });
    const last = docs.at(-1);
    if (last === undefined || docs.length < PAGE) return;
    from = query.startAfter(last);
  }
}
