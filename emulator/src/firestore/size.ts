/**
 * How large a document is by the service's own rules, and its limit of 1 MiB
 * (https://firebase.google.com/docs/firestore/storage-size). A larger one is INVALID_ARGUMENT.
 */
import { invalidArgument } from '../grpc-server.ts';
import type { DocumentName } from './names.ts';
import { type Fields, type Value, vectorOf } from './values.ts';

const MAX_DOCUMENT_BYTES = 1_048_576;
/** Of one string or bytes value: 1 MiB - 89 bytes. */
const MAX_VALUE_BYTES = 1_048_487;

const stringSize = (text: string): number => Buffer.byteLength(text) + 1;
/** Of the name of a document by its segments. */
export const nameSize = (segments: readonly string[]): number =>
  segments.reduce((sum, segment) => sum + stringSize(segment), 16);

export const documentSize = (name: DocumentName, fields: Fields): number =>
  nameSize(name.segments) + fieldsSize(fields) + 32;

/** Throws INVALID_ARGUMENT for a document, or a value in it, that is too large. Gives its size in bytes. */
export function checkDocumentSize(name: DocumentName, fields: Fields): number {
  const size = documentSize(name, fields);
  if (size > MAX_DOCUMENT_BYTES) {
    throw invalidArgument(
      `the document "${name.full}" cannot be written because its size (${size} bytes) exceeds the maximum of ${MAX_DOCUMENT_BYTES} bytes`,
    );
  }
  return size;
}

function fieldsSize(fields: Fields): number {
  let size = 0;
  for (const [name, value] of Object.entries(fields)) size += stringSize(name) + valueSize(value, name);
  return size;
}

/** `where` names it in the error for one that is too large. */
export function valueSize(value: Value, where: string): number {
  switch (value.valueType) {
    case 'nullValue':
    case 'booleanValue':
      return 1;
    case 'integerValue':
    case 'doubleValue':
    case 'timestampValue':
      return 8;
    case 'geoPointValue':
      return 16;
    case 'stringValue':
      return limited(stringSize(value.stringValue), 1, where);
    case 'bytesValue':
      return limited(value.bytesValue.length, 0, where);
    case 'referenceValue':
      return nameSize(value.referenceValue.split('/').slice(5));
    case 'arrayValue':
      return value.arrayValue.values.reduce((sum, element) => sum + valueSize(element, where), 0);
    case 'mapValue': {
      const numbers = vectorOf(value);
      return numbers === undefined ? fieldsSize(value.mapValue.fields) + 32 : numbers.length * 8;
    }
  }
}

function limited(size: number, overhead: number, where: string): number {
  if (size - overhead <= MAX_VALUE_BYTES) return size;
  throw invalidArgument(
    `the value of "${where}" is longer than ${MAX_VALUE_BYTES} bytes (it has ${size - overhead})`,
  );
}
