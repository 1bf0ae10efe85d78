/**
 * Contracts and rules on Firestore: on the local stack's server, and the contracts on the one that
 * TEST_FIRESTORE_EMULATOR_HOST names too.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { Firestore } from '@google-cloud/firestore';
import { firestoreInbox } from '../../../shared/src/dedup/firestore.ts';
import { firestoreOutbox } from '../../../shared/src/outbox/firestore.ts';
import { firestoreServers } from '../servers/firestore-servers.ts';
import { choreographyContract } from '../../../shared/src/sagas/choreography-contract.ts';
import { sagaStoreContract } from '../../../shared/src/sagas/contract.ts';
import { firestoreSagas, firestoreStepRecords } from '../../../shared/src/sagas/firestore.ts';
import { instanceId } from '../../../shared/src/sagas/instance.ts';
import { stepRecordsContract } from '../../../shared/src/sagas/records-contract.ts';
import { sagaRules } from '../../../shared/src/sagas/rules-contract.ts';
import { stepRecordId } from '../../../shared/src/sagas/step-records.ts';
import { firestoreGround } from './firestore-ground.ts';

/** Collections of their own: another emulator keeps what earlier runs left behind. */
const run = `${process.pid}-${randomUUID()}`;
const inboxOf = (firestore: Firestore) =>
  firestoreInbox(firestore, {
    collection: `claims-${run}`,
    outbox: firestoreOutbox(firestore, { rows: `rows-${run}`, streams: `streams-${run}` }),
  });

for (const [name, open] of firestoreServers('enforce')) {
  sagaStoreContract(name, async () => {
    const { firestore, close } = await open();
    const collection = `sagas-${run}`;
    return {
      store: firestoreSagas(firestore, { collection }),
      inbox: inboxOf(firestore),
      plantUnrecognised: async (ref) =>
        void (await firestore.collection(collection).doc(instanceId(ref)).set({ v: 1, state: 'mine' })),
      close,
    };
  });
  stepRecordsContract(name, async () => {
    const { firestore, close } = await open();
    const collection = `steps-${run}`;
    const at = (id: string) => firestore.collection(`numbers-${run}`).doc(id);
    return {
      records: firestoreStepRecords(firestore, { collection }),
      inbox: inboxOf(firestore),
      get: async (transaction, id) => Number((await transaction.get(at(id))).get('value') ?? 0),
      set: (transaction, id, value) => void transaction.set(at(id), { value }),
      read: async (id) => Number((await at(id).get()).get('value') ?? 0),
      plantUnrecognised: async (ref) =>
        void (await firestore.collection(collection).doc(stepRecordId(ref)).set({ v: 2 })),
      close,
    };
  });
}

sagaRules('on Firestore of the local stack', async () => firestoreGround());

choreographyContract('on Firestore of the local stack', async () => firestoreGround());

test('the stores know the project that their client was given, and say that they do not know one that it still has to ask for', () => {
  for (const [settings, project] of [
    [{ projectId: 'orders' }, 'orders'],
    [{}, undefined],
  ] as const) {
    const firestore = new Firestore(settings);
    assert.equal(firestoreSagas(firestore).project?.(), project);
    assert.equal(firestoreStepRecords(firestore).project?.(), project);
  }
});
