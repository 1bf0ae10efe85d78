/** The ground of saga tests on Firestore of the local stack, whose time a test moves. */
import type { Firestore, Transaction } from '@google-cloud/firestore';
import { startFirestore } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { firestoreInbox } from '../../../shared/src/dedup/firestore.ts';
import { clientOf } from '../servers/firestore-servers.ts';
import {
  firestoreSagas,
  firestoreStepRecords,
  firestoreTraces,
} from '../../../shared/src/sagas/firestore.ts';
import { stepRecordId } from '../../../shared/src/sagas/step-records.ts';
import type { Ground } from '../../../shared/src/testing/saga-ground.ts';

export async function firestoreGround(): Promise<Ground<Transaction> & Readonly<{ firestore: Firestore }>> {
  const clock = systemClock();
  let aheadMs = 0;
  const server = await startFirestore({
    clock: { now: () => clock.now() + aheadMs, after: clock.after },
    indexes: { mode: 'enforce' },
  });
  const firestore = clientOf(server.address);
  const numbers = firestore.collection('numbers');
  const at = (name: string) => numbers.doc(name.replaceAll('/', '~'));
  return {
    firestore,
    inbox: firestoreInbox(firestore),
    store: firestoreSagas(firestore),
    records: firestoreStepRecords(firestore),
    traces: firestoreTraces(firestore),
    clock,
    now: () => clock.now() + aheadMs,
    pass: async (milliseconds) => void (aheadMs += milliseconds),
    until: (done) => done,
    get: async (transaction, name) => Number((await transaction.get(at(name))).get('value') ?? 0),
    set: (transaction, name, value) => void transaction.set(at(name), { value }),
    read: async (name) => Number((await at(name).get()).get('value') ?? 0),
    forget: async (ref) =>
      void (await firestore.collection('pubsub-guarantees-saga-steps').doc(stepRecordId(ref)).delete()),
    async close() {
      await firestore.terminate();
      await server.close();
    },
  };
}
