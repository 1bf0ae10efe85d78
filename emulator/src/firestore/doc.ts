/** A stored document, one version of it: immutable. */
import { type FieldPath, getField, isName } from './field-path.ts';
import type { DocumentName } from './names.ts';
import type { Microseconds } from './time.ts';
import type { Fields, Value } from './values.ts';

export type Doc = Readonly<{
  name: DocumentName;
  fields: Fields;
  createTime: Microseconds;
  updateTime: Microseconds;
}>;

export type Change = Readonly<{ name: DocumentName; before: Doc | undefined; after: Doc | undefined }>;

/** The value of a field, or of `__name__`, which is a reference. */
export function fieldOf(doc: Doc, path: FieldPath): Value | undefined {
  if (!isName(path)) return getField(doc.fields, path);
  return { valueType: 'referenceValue', referenceValue: doc.name.full };
}
