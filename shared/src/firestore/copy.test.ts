import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { Firestore } from '@google-cloud/firestore';
import { firestoreClaims, firestoreInbox } from '../dedup/firestore.ts';
import { ConfigError } from '../errors.ts';
import { firestoreCounters, firestoreCounterStart, firestoreStreams } from '../order/firestore.ts';
import { firestoreOutbox } from '../outbox/firestore.ts';
import { firestorePayloads } from '../payload/firestore.ts';
import { firestoreSagas, firestoreStepRecords, firestoreTraces } from '../sagas/firestore.ts';
import { firestoreLedger } from '../schedules/firestore.ts';

const PACKAGE = '@google-cloud/firestore';

/** The class as another installation of the same version has it. */
function otherCopy(): typeof Firestore {
  const require = createRequire(import.meta.url);
  const kept = { ...require.cache };
  for (const file of Object.keys(require.cache)) {
    if (file.includes(`/${PACKAGE}/`)) delete require.cache[file];
  }
  const other: { Firestore: typeof Firestore } = require(PACKAGE);
  Object.assign(require.cache, kept);
  return other.Firestore;
}

const stores = {
  firestoreClaims,
  firestoreCounters,
  firestoreCounterStart,
  firestoreInbox,
  firestoreLedger,
  firestoreOutbox,
  firestorePayloads,
  firestoreSagas,
  firestoreStepRecords,
  firestoreStreams,
  firestoreTraces,
};

for (const [name, store] of Object.entries(stores)) {
  test(`${name} refuses a client of another copy of Firestore's package, and says what to do`, () => {
    const other = new (otherCopy())({ projectId: 'demo-project' });
    assert.throws(
      () => store(other),
      (error: unknown) => {
        assert.ok(error instanceof ConfigError);
        assert.match(error.message, /npm ls @google-cloud\/firestore/);
        return true;
      },
    );
    store(new Firestore({ projectId: 'demo-project' }));
  });
}
