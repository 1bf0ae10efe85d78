/**
 * The writes of a commit: read from the wire, and planned against a view. A plan changes nothing: it is the
 * list of changes that a commit applies at once, so a write that fails leaves nothing of the others.
 */
import { invalidArgument } from '../grpc-server.ts';
import type { Change, Doc } from './doc.ts';
import type { View } from './documents.ts';
import { type FieldPath, getField, parseFieldPath, setField } from './field-path.ts';
import { identicalFields } from './identical.ts';
import type { IndexEntryCheck } from './index-entry-limits.ts';
import { type DocumentName, parseDocument } from './names.ts';
import {
  checkPrecondition,
  type Precondition,
  parsePrecondition,
  type WirePrecondition,
} from './preconditions.ts';
import { checkDocumentSize } from './size.ts';
import { type Microseconds, toWire } from './time.ts';
import { applyTransforms, parseTransform, type Transform, type WireTransform } from './transforms.ts';
import { checkFieldName, checkFields, type Fields, fieldsOf, type Value, type WireValue } from './values.ts';

export type WireMask = Readonly<{ fieldPaths: readonly string[] }> | null;

export type WireWrite = Readonly<{
  operation?: string;
  update?: Readonly<{ name: string; fields: Readonly<Record<string, WireValue>> }>;
  delete?: string;
  transform?: Readonly<{ document: string; fieldTransforms: readonly WireTransform[] }>;
  updateMask: WireMask;
  updateTransforms: readonly WireTransform[];
  currentDocument: WirePrecondition;
}>;

export type Write = Readonly<{
  name: DocumentName;
  precondition: Precondition | undefined;
  /** The document's fields after the write; undefined deletes it. */
  edit(fields: Fields): Fields | undefined;
  transforms: readonly Transform[];
}>;

export type Plan = Readonly<{
  changes: readonly Change[];
  /** One for each write. The update time is undefined after a delete. */
  results: readonly Readonly<{
    updateTime: Microseconds | undefined;
    transformResults: readonly Value[];
    /** As it is after all the writes. */
    doc: Doc | undefined;
  }>[];
}>;

/** Field transforms of one document in one commit (https://firebase.google.com/docs/firestore/quotas). */
const MAX_TRANSFORMS = 500;

export function parseWrite(wire: WireWrite, database: string): Write {
  const precondition = parsePrecondition(wire.currentDocument);
  const transforms = wire.updateTransforms.map(parseTransform);
  if (wire.operation !== 'update' && (transforms.length > 0 || wire.updateMask !== null)) {
    throw invalidArgument('update_mask and update_transforms go with an update only');
  }
  if (wire.operation === 'update' && wire.update !== undefined) {
    const name = parseDocument(wire.update.name, database);
    const fields = checkFields(wire.update.fields, 'fields');
    const mask = wire.updateMask?.fieldPaths.map(parseMaskPath);
    const edit = mask === undefined ? () => fields : (current: Fields) => applyMask(current, fields, mask);
    return { name, precondition, edit, transforms };
  }
  if (wire.operation === 'delete' && wire.delete !== undefined) {
    return { name: parseDocument(wire.delete, database), precondition, edit: () => undefined, transforms };
  }
  if (wire.operation === 'transform' && wire.transform !== undefined) {
    const { document, fieldTransforms } = wire.transform;
    if (fieldTransforms.length === 0) throw invalidArgument('a transform must have field_transforms');
    const name = parseDocument(document, database);
    return { name, precondition, edit: (fields) => fields, transforms: fieldTransforms.map(parseTransform) };
  }
  throw invalidArgument(`the write operation ${wire.operation ?? '(not set)'} is not known`);
}

/** What the writes would do to the view, in order. Throws the error of the first one that fails. */
export function planWrites(
  view: View,
  writes: readonly Write[],
  now: Microseconds,
  checkEntries: IndexEntryCheck,
): Plan {
  const changes = new Map<string, Change>();
  const transformCounts = new Map<string, number>();
  const drafts = writes.map((write) => {
    const { name } = write;
    const known = changes.get(name.full);
    const before = known === undefined ? view.get(name) : known.before;
    const current = known === undefined ? before : known.after;
    checkPrecondition(write.precondition, current, name.full);
    countTransforms(transformCounts, write);
    const { after, transformResults } = applyWrite(write, current, now, checkEntries);
    changes.set(name.full, { name, before, after });
    return { name, deleted: after === undefined, transformResults };
  });
  for (const [key, change] of changes) changes.set(key, withoutEmptyUpdate(change));
  return {
    changes: [...changes.values()].filter(({ before, after }) => before !== after),
    results: drafts.map(({ name, deleted, transformResults }) => ({
      updateTime: deleted ? undefined : (changes.get(name.full)?.after?.updateTime ?? now),
      transformResults,
      doc: changes.get(name.full)?.after,
    })),
  };
}

function applyWrite(
  write: Write,
  current: Doc | undefined,
  now: Microseconds,
  checkEntries: IndexEntryCheck,
) {
  const edited = write.edit(current?.fields ?? fieldsOf([]));
  if (edited === undefined) return { after: undefined, transformResults: [] };
  const { fields, results } = applyTransforms(edited, write.transforms, toWire(now));
  checkEntries(write.name, fields, checkDocumentSize(write.name, fields));
  const createTime = current?.createTime ?? now;
  const after: Doc = { name: write.name, fields, createTime, updateTime: now };
  return { after, transformResults: results };
}

/** A write that leaves a document as it was keeps its update time (google.firestore.v1.WriteResult). */
function withoutEmptyUpdate(change: Change): Change {
  const { before, after } = change;
  const unchanged =
    before !== undefined &&
    after !== undefined &&
    before.createTime === after.createTime &&
    identicalFields(before.fields, after.fields);
  return unchanged ? { ...change, after: before } : change;
}

function parseMaskPath(text: string): FieldPath {
  const path = parseFieldPath(text);
  for (const segment of path) checkFieldName(segment, 'update_mask');
  return path;
}

function applyMask(current: Fields, fields: Fields, mask: readonly FieldPath[]): Fields {
  return mask.reduce((changed, path) => setField(changed, path, getField(fields, path)), current);
}

function countTransforms(counts: Map<string, number>, write: Write): void {
  const count = (counts.get(write.name.full) ?? 0) + write.transforms.length;
  counts.set(write.name.full, count);
  if (count > MAX_TRANSFORMS) {
    throw invalidArgument(`more than ${MAX_TRANSFORMS} field transforms on ${write.name.full} in one commit`);
  }
}
