/** Firestore in native mode, Standard edition: every method that server clients use, by what its documentation says. */
import type { Suite } from '../case.ts';
import { aggregationCases } from './cases/aggregations.ts';
import { batchWriteCases } from './cases/batch-writes.ts';
import { collectionCases } from './cases/collections.ts';
import { contentionCases } from './cases/contention.ts';
import { cursorCases } from './cases/cursors.ts';
import { databaseCases } from './cases/databases.ts';
import { documentCases } from './cases/documents.ts';
import { explainCases } from './cases/explain.ts';
import { fieldLimitCases } from './cases/field-limits.ts';
import { filterLimitCases } from './cases/filter-limits.ts';
import { filterCases } from './cases/filters.ts';
import { indexEntryLimitCases } from './cases/index-entry-limits.ts';
import { indexCases } from './cases/indexes.ts';
import { listenCases } from './cases/listen.ts';
import { listenStreamCases } from './cases/listen-stream.ts';
import { listCases } from './cases/lists.ts';
import { lockCases } from './cases/locks.ts';
import { nameLimitCases } from './cases/name-limits.ts';
import { orderCases } from './cases/orders.ts';
import { readTimeCases } from './cases/read-times.ts';
import { sizeLimitCases } from './cases/size-limits.ts';
import { transactionCases } from './cases/transactions.ts';
import { transformCases } from './cases/transforms.ts';
import { ttlCases } from './cases/ttl.ts';
import { valueCases } from './cases/values.ts';
import { writeCases } from './cases/writes.ts';
import { embeddedWorld, type FirestoreWorld, officialWorld } from './world.ts';

export const firestoreSuite: Suite<FirestoreWorld> = {
  service: 'Firestore',
  embedded: embeddedWorld,
  official: officialWorld,
  cases: [
    ...documentCases,
    ...readTimeCases,
    ...writeCases,
    ...batchWriteCases,
    ...transformCases,
    ...transactionCases,
    ...lockCases,
    ...filterCases,
    ...filterLimitCases,
    ...orderCases,
    ...collectionCases,
    ...cursorCases,
    ...aggregationCases,
    ...listCases,
    ...listenCases,
    ...listenStreamCases,
    ...nameLimitCases,
    ...fieldLimitCases,
    ...sizeLimitCases,
    ...indexEntryLimitCases,
    ...valueCases,
    ...indexCases,
    ...explainCases,
    ...ttlCases,
    ...databaseCases,
    // Last, because a slow server is slow for its neighbours, too.
    ...contentionCases,
  ],
};
