/**
 * The methods that write one document by its name: CreateDocument, UpdateDocument, DeleteDocument. Each is a commit of one
 * write, and answers the document as that commit left it.
 */
import { randomInt } from 'node:crypto';
import { invalidArgument } from '../grpc-server.ts';
import type { Database } from './database.ts';
import { checkCollectionId, databaseOf, parseParent } from './names.ts';
import type { WirePrecondition } from './preconditions.ts';
import { parseMask, toWireDocument } from './requests.ts';
import type { WireValue } from './values.ts';
import type { WireMask, WireWrite } from './writes.ts';

type WireDocument = Readonly<{ name: string; fields: Readonly<Record<string, WireValue>> }> | null;
type DatabaseNamed = (name: string) => Database;

export type CreateDocumentRequest = Readonly<{
  parent: string;
  collectionId: string;
  /** Empty: one is assigned. */
  documentId: string;
  document: WireDocument;
  mask: WireMask;
}>;
export type UpdateDocumentRequest = Readonly<{
  document: WireDocument;
  updateMask: WireMask;
  mask: WireMask;
  currentDocument: WirePrecondition;
}>;
export type DeleteDocumentRequest = Readonly<{ name: string; currentDocument: WirePrecondition }>;

/** As the clients make them: of 20 letters and digits. */
const ID_LENGTH = 20;
const ID_CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

export async function createDocument(
  databases: DatabaseNamed,
  request: CreateDocumentRequest,
  signal: AbortSignal,
) {
  const { parent, collectionId, documentId, document, mask } = request;
  if (document !== null && document.name !== '') {
    throw invalidArgument(`the name of a document to be created must not be set; it is "${document.name}"`);
  }
  parseParent(parent, databaseOf(parent));
  checkCollectionId(collectionId);
  const name = `${parent}/${collectionId}/${documentId === '' ? newId() : documentId}`;
  const update = { name, fields: document?.fields ?? {} };
  const currentDocument: WirePrecondition = { conditionType: 'exists', exists: false };
  return await write(
    databases,
    name,
    { ...EMPTY, operation: 'update', update, currentDocument },
    mask,
    signal,
  );
}

export async function updateDocument(
  databases: DatabaseNamed,
  { document: update, updateMask, mask, currentDocument }: UpdateDocumentRequest,
  signal: AbortSignal,
) {
  if (update === null) throw invalidArgument('UpdateDocument needs a document');
  const asked: WireWrite = { ...EMPTY, operation: 'update', update, updateMask, currentDocument };
  return await write(databases, update.name, asked, mask, signal);
}

export async function deleteDocument(
  databases: DatabaseNamed,
  { name, currentDocument }: DeleteDocumentRequest,
  signal: AbortSignal,
) {
  const asked: WireWrite = { ...EMPTY, operation: 'delete', delete: name, currentDocument };
  await databases(databaseOf(name)).commit([asked], undefined, signal);
  return {};
}

const EMPTY = { updateMask: null, updateTransforms: [], currentDocument: null };

async function write(
  databases: DatabaseNamed,
  name: string,
  asked: WireWrite,
  wireMask: WireMask,
  signal: AbortSignal,
) {
  const mask = parseMask(wireMask);
  const { results } = await databases(databaseOf(name)).commit([asked], undefined, signal);
  const doc = results[0]?.doc;
  if (doc === undefined) throw new Error(`the write of ${name} left no document`);
  return toWireDocument(doc, mask);
}

const newId = (): string =>
  Array.from({ length: ID_LENGTH }, () => ID_CHARACTERS.charAt(randomInt(ID_CHARACTERS.length))).join('');
