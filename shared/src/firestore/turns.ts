/**
 * Writes and reads of one turn of the event loop share requests: a burst of deliveries costs a few of them where it would
 * cost hundreds, and a delivery alone goes out as it is. Each write is applied or refused by itself, and billed as before.
 *
 * A request that fails fails for all that share it, as unknown. Nothing is delayed for the sake of sharing.
 */
import type {
  BulkWriter,
  CollectionReference,
  DocumentData,
  DocumentReference,
  DocumentSnapshot,
  Precondition,
  WriteResult,
} from '@google-cloud/firestore';
import { turnBatch } from '../async/turn-batch.ts';

export type DocumentTurns = Readonly<{
  /** Rejects with code 6 when the document is there. */
  create(id: string, fields: DocumentData): Promise<WriteResult>;
  update(id: string, fields: DocumentData, precondition: Precondition): Promise<WriteResult>;
  get(id: string): Promise<DocumentSnapshot>;
}>;

/** Documents in one read. Writes are split by the client itself, 20 to a request. */
const READS = 100;

export function documentTurns(collection: CollectionReference): DocumentTurns {
  const { firestore } = collection;
  const write = turnBatch<Write, WriteResult>(setImmediate, (writes) => {
    const [first] = writes;
    if (first !== undefined && writes.length === 1) {
      first.answer(alone(first.item));
      return;
    }
    // No ramp-up: this adds no traffic. The client repeats a whole request; what it says of one write is judged above.
    const writer = firestore.bulkWriter({ throttling: false });
    writer.onWriteError(() => false);
    try {
      for (const { item, answer } of writes) answer(together(writer, item));
    } finally {
      // Never rejects. A writer that is left open would keep the caller from terminating its client.
      void writer.close();
    }
  });
  const get = turnBatch<DocumentReference, DocumentSnapshot>(setImmediate, (reads) => {
    const [first] = reads;
    if (first !== undefined && reads.length === 1) {
      first.answer(first.item.get());
      return;
    }
    for (let from = 0; from < reads.length; from += READS) {
      const some = reads.slice(from, from + READS);
      const found = firestore.getAll(...some.map(({ item }) => item));
      some.forEach(({ item, answer }, index) =>
        answer(found.then((snapshots) => theOne(snapshots[index], item))),
      );
    }
  });
  return {
    create: (id, fields) => write({ document: collection.doc(id), fields }),
    update: (id, fields, precondition) => write({ document: collection.doc(id), fields, precondition }),
    get: (id) => get(collection.doc(id)),
  };
}

/** Without a precondition: a creation. */
type Write = Readonly<{ document: DocumentReference; fields: DocumentData; precondition?: Precondition }>;

const alone = ({ document, fields, precondition }: Write): Promise<WriteResult> =>
  precondition === undefined ? document.create(fields) : document.update(fields, precondition);

const together = (writer: BulkWriter, { document, fields, precondition }: Write): Promise<WriteResult> =>
  precondition === undefined
    ? writer.create(document, fields)
    : writer.update(document, fields, precondition);

function theOne(snapshot: DocumentSnapshot | undefined, { path }: DocumentReference): DocumentSnapshot {
  if (snapshot?.ref.path !== path) throw new Error(`the read did not answer about ${path}`);
  return snapshot;
}
