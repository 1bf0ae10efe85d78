/**
 * Erasing the record of one identity, over Google's client. The record is deleted as it was read: one that changes in
 * between, or that a handler is at work under, stays. A second call finds nothing, and says so.
 */
import { Firestore, Timestamp } from '@google-cloud/firestore';
import { PermanentError } from '../errors.ts';
import type { EraseLine } from './command-line.ts';
import type { Printed } from './usage.ts';

/** Rejects with PermanentError `IN_PROGRESS` for a record that a handler may be at work under. */
export async function runErase({ project, database, collection, command }: EraseLine): Promise<Printed> {
  const firestore = new Firestore({ projectId: project, databaseId: database });
  const record = firestore.collection(collection).doc(command.key);
  const found = await record.get();
  const name = `${collection}/${command.key}`;
  if (!found.exists || found.updateTime === undefined) {
    await firestore.terminate();
    return { object: { record: name, found: false, erased: false }, lines: [`there is no record ${name}`] };
  }
  const { state, doneAt } = found.data() as Readonly<{ state?: unknown; doneAt?: unknown }>;
  if (state !== 'done') {
    await firestore.terminate();
    throw new PermanentError(
      'IN_PROGRESS',
      `${name} is ${String(state)}; accepted: done. Without it the message would be processed twice at once: try again after the lease`,
    );
  }
  const since = doneAt instanceof Timestamp ? doneAt.toDate().toISOString() : 'an unknown time';
  if (!command.isDry) await record.delete({ lastUpdateTime: found.updateTime });
  await firestore.terminate();
  return {
    object: { record: name, found: true, erased: !command.isDry, doneAt: since },
    lines: [`${command.isDry ? 'would erase' : 'erased'} ${name}, done at ${since}`],
  };
}
