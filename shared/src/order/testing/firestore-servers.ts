/**
 * The Firestore servers that the tests run on: the local stack's, and the one that TEST_FIRESTORE_EMULATOR_HOST names.
 */
import assert from 'node:assert/strict';
import { Firestore } from '@google-cloud/firestore';
import { startFirestore } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../clock.ts';

export type OpenedFirestore = Readonly<{ firestore: Firestore; close(): Promise<void> }>;

/** The client reads the variable when it is made; there is no metadata server to look for. */
export function clientOf(address: string): Firestore {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  process.env['FIRESTORE_EMULATOR_HOST'] = address;
  return new Firestore({ projectId: 'test-project' });
}

export async function onLocalStack(): Promise<OpenedFirestore> {
  const faults: string[] = [];
  const server = await startFirestore({
    clock: systemClock(),
    indexes: { mode: 'off' },
    log: (line) => faults.push(line),
  });
  const firestore = clientOf(server.address);
  const close = async (): Promise<void> => {
    await firestore.terminate();
    await server.close();
    assert.deepEqual(faults, []);
  };
  return { firestore, close };
}

export const servers: [string, () => Promise<OpenedFirestore>][] = [
  ['Firestore of the local stack', onLocalStack],
];
const given = process.env['TEST_FIRESTORE_EMULATOR_HOST'];
if (given !== undefined) {
  servers.push([
    `Firestore at ${given}`,
    async () => {
      const firestore = clientOf(given);
      return { firestore, close: () => firestore.terminate() };
    },
  ]);
}
