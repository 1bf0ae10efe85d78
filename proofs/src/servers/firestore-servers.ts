/**
 * The Firestore servers that the tests run on: the local stack's, and the one that TEST_FIRESTORE_EMULATOR_HOST names.
 */
import assert from 'node:assert/strict';
import { Firestore } from '@google-cloud/firestore';
import { startFirestore } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';

export type OpenedFirestore = Readonly<{ firestore: Firestore; close(): Promise<void> }>;

/** Keeps the client from looking for a metadata server. */
export function clientOf(address: string): Firestore {
  process.env['METADATA_SERVER_DETECTION'] ??= 'none';
  const [host = '', port] = address.split(':');
  return new Firestore({ projectId: 'test-project', host, port: Number(port), ssl: false });
}

/** With `enforce` every query must do with the indexes that Firestore makes by itself. */
type Indexes = 'off' | 'enforce';

export async function onLocalStack(indexes: Indexes): Promise<OpenedFirestore> {
  const faults: string[] = [];
  const server = await startFirestore({
    clock: systemClock(),
    indexes: { mode: indexes },
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

/** Each with its name. */
export function firestoreServers(indexes: Indexes): readonly [string, () => Promise<OpenedFirestore>][] {
  const local: [string, () => Promise<OpenedFirestore>] = [
    'Firestore of the local stack',
    () => onLocalStack(indexes),
  ];
  const given = process.env['TEST_FIRESTORE_EMULATOR_HOST'];
  if (given === undefined) return [local];
  const open = async (): Promise<OpenedFirestore> => {
    const firestore = clientOf(given);
    return { firestore, close: () => firestore.terminate() };
  };
  return [local, [`Firestore at ${given}`, open]];
}
