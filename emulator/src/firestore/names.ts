/**
 * Resource names: projects/P/databases/D/documents/COLLECTION/ID/…, checked by the service's own limits
 * (https://firebase.google.com/docs/firestore/quotas). A name that does not fit is INVALID_ARGUMENT.
 */
import { invalidArgument } from '../grpc-server.ts';

export type DocumentName = Readonly<{
  /** The full resource name: what everything is keyed by. */
  full: string;
  /** Collection and document IDs in turn, below `/documents`. */
  segments: readonly string[];
  /** The collection's path below `/documents`, for example `rooms/r1/messages`. */
  collection: string;
}>;

/** Bytes of one collection or document ID, of a whole name, and the depth of subcollections. */
const MAX_ID_BYTES = 1_500;
const MAX_NAME_BYTES = 6 * 1024;
const MAX_DEPTH = 100;

/** As the documents of an import from Datastore are called: a number of 64 bits, written in one way. */
const NUMERIC_ID = /^__id(0|-?[1-9]\d{0,18})__$/;
const [MIN_NUMBER, MAX_NUMBER] = [-(2n ** 63n), 2n ** 63n - 1n];

/** The number of a numeric ID. */
export function numericId(id: string): bigint | undefined {
  const digits = id.startsWith('__id') ? NUMERIC_ID.exec(id)?.[1] : undefined;
  const number = digits === undefined ? undefined : BigInt(digits);
  return number !== undefined && number >= MIN_NUMBER && number <= MAX_NUMBER ? number : undefined;
}

export const isReserved = (id: string): boolean => /^__.*__$/s.test(id);

/** Checks `projects/P/databases/D` and returns it. */
export function parseDatabase(name: string): string {
  if (!/^projects\/[^/]+\/databases\/[^/]+$/.test(name)) {
    throw invalidArgument(`"${name}" is not a database: want projects/PROJECT/databases/DATABASE`);
  }
  return name;
}

/** The database that a document or a parent is in. */
export function databaseOf(name: string): string {
  return parseDatabase(name.split('/', 4).join('/'));
}

export function parseDocument(full: string, database: string): DocumentName {
  const segments = parsePath(full, database);
  if (segments.length === 0 || segments.length % 2 !== 0) {
    throw invalidArgument(`"${full}" is not a document: want an even number of segments after /documents/`);
  }
  return { full, segments, collection: segments.slice(0, -1).join('/') };
}

/** The parent of collections: the root (no segments) or a document. */
export function parseParent(full: string, database: string): readonly string[] {
  const segments = full === `${database}/documents` ? [] : parsePath(full, database);
  if (segments.length % 2 !== 0) {
    throw invalidArgument(`"${full}" is not a parent: want the root or the name of a document`);
  }
  return segments;
}

export function checkCollectionId(id: string): void {
  if (id.includes('/')) throw invalidArgument(`"${id}" is not a collection ID: it contains a slash`);
  checkId(id, id);
}

function parsePath(full: string, database: string): readonly string[] {
  const root = `${database}/documents/`;
  if (!full.startsWith(root)) throw invalidArgument(`"${full}" is not below "${root}"`);
  if (Buffer.byteLength(full) > MAX_NAME_BYTES) {
    throw invalidArgument(`the name "${full.slice(0, 80)}…" is longer than ${MAX_NAME_BYTES} bytes`);
  }
  const segments = full.slice(root.length).split('/');
  if (segments.length > 2 * MAX_DEPTH) {
    throw invalidArgument(`"${full.slice(0, 80)}…" has more than ${MAX_DEPTH} levels of collections`);
  }
  segments.forEach((segment, index) => checkId(segment, full, index % 2 === 1));
  return segments;
}

function checkId(id: string, full: string, ofDocument = false): void {
  if (id === '') throw invalidArgument(`"${full}" has an empty segment`);
  if (id === '.' || id === '..') throw invalidArgument(`"${full}": an ID may not be "${id}"`);
  if (isReserved(id) && !(ofDocument && numericId(id) !== undefined))
    throw invalidArgument(`"${full}": the ID "${id}" matches the reserved pattern __.*__`);
  if (id.length * 3 > MAX_ID_BYTES && Buffer.byteLength(id) > MAX_ID_BYTES) {
    throw invalidArgument(`"${full.slice(0, 80)}…": an ID is longer than ${MAX_ID_BYTES} bytes`);
  }
}
