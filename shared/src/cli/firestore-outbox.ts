/**
 * The outbox that a command line names, over Google's client. Nothing here publishes. `close` ends what was opened.
 */
import { Firestore } from '@google-cloud/firestore';
import { firestoreOutbox } from '../outbox/firestore.ts';
import type { RelayStore } from '../outbox/outbox-store.ts';
import type { OutboxLine } from './command-line.ts';

export function openOutbox(line: OutboxLine): Readonly<{ store: RelayStore; close(): Promise<void> }> {
  const { project, database, rows, streams, counters, scope } = line;
  const firestore = new Firestore({ projectId: project, databaseId: database });
  const store = firestoreOutbox(firestore, {
    rows,
    streams,
    counters,
    ...(scope !== undefined && { scope }),
  });
  return { store, close: () => firestore.terminate() };
}
