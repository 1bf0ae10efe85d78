/**
 * Contracts and rules on Firestore: on the local stack's server, and the contracts on the one that
 * TEST_FIRESTORE_EMULATOR_HOST names too.
 */
import { randomUUID } from 'node:crypto';
import type { Firestore } from '@google-cloud/firestore';
import { firestoreInbox } from '../dedup/firestore.ts';
import { firestoreOutbox } from '../outbox/firestore.ts';
import { firestoreServers } from '../testing/firestore-servers.ts';
import { sagaStoreContract } from './contract.ts';
import { firestoreSagas, firestoreStepRecords } from './firestore.ts';
import { instanceId } from './instance.ts';
import { stepRecordsContract } from './records-contract.ts';
import { sagaRules } from './rules-contract.ts';
import { stepRecordId } from './step-records.ts';
import { firestoreGround } from './testing/firestore-ground.ts';

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
      plantForeign: async (ref) =>
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
      plantForeign: async (ref) =>
        void (await firestore.collection(collection).doc(stepRecordId(ref)).set({ v: 2 })),
      close,
    };
  });
}

sagaRules('on Firestore of the local stack', async () => firestoreGround());
