/**
 * The methods that read documents by their names: GetDocument and BatchGetDocuments. A document is answered
 * as it is or as missing, never left out; the transaction that a read begins is in its first answer.
 */
import { notFound } from '../grpc-server.ts';
import type { Database } from './database.ts';
import type { Doc } from './doc.ts';
import { type DocumentName, databaseOf, parseDatabase, parseDocument } from './names.ts';
import {
  type BatchGetRequest,
  type GetDocumentRequest,
  parseMask,
  parseSelector,
  toWireDocument,
} from './requests.ts';
import { toWire } from './time.ts';

type DatabaseNamed = (name: string) => Database;

export async function getDocument(
  databases: DatabaseNamed,
  request: GetDocumentRequest,
  signal: AbortSignal,
) {
  const database = databaseOf(request.name);
  const mask = parseMask(request.mask);
  const names = [parseDocument(request.name, database)];
  const { result } = await databases(database).read(parseSelector(request), readDocuments(names), signal);
  const doc = result[0]?.doc;
  if (doc === undefined) throw notFound(`Document "${request.name}" not found.`);
  return toWireDocument(doc, mask);
}

export async function batchGetDocuments(
  databases: DatabaseNamed,
  request: BatchGetRequest,
  signal: AbortSignal,
) {
  const database = parseDatabase(request.database);
  const mask = parseMask(request.mask);
  const names = [...new Set(request.documents)].map((name) => parseDocument(name, database));
  const read = await databases(database).read(parseSelector(request), readDocuments(names), signal);
  const readTime = toWire(read.readTime);
  const answers = read.result.map(({ name, doc }) =>
    doc === undefined ? { missing: name.full, readTime } : { found: toWireDocument(doc, mask), readTime },
  );
  return withTransaction(answers, { readTime }, read.began);
}

type FoundDocument = Readonly<{ name: DocumentName; doc: Doc | undefined }>;

function readDocuments(names: readonly DocumentName[]) {
  const documents = names.map(({ full }) => full);
  return {
    look: (view: { get(name: DocumentName): Doc | undefined }) => ({
      documents,
      result: names.map((name): FoundDocument => ({ name, doc: view.get(name) })),
    }),
  };
}

/** At least one answer, and the new transaction in the first. */
export function withTransaction<T extends object>(
  answers: readonly T[],
  empty: object,
  began: Buffer | undefined,
) {
  const all: readonly object[] = answers.length === 0 ? [empty] : answers;
  return all.map((answer, i) =>
    i === 0 && began !== undefined ? { ...answer, transaction: began } : answer,
  );
}
