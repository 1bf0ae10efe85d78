/**
 * The limits on the index entries of a document. A write that breaks one is INVALID_ARGUMENT and changes nothing; a
 * single-field exemption takes its entries away. Documents with few fields are let through by a bound, uncounted.
 */
import { invalidArgument, type StatusError } from '../grpc-server.ts';
import type { IndexDefinitions } from './index-definitions.ts';
import {
  distinctElements,
  hasComposites,
  type IndexUsage,
  indexUsage,
  indexUsageAtMost,
} from './index-entries.ts';
import type { DocumentName } from './names.ts';
import type { Fields } from './values.ts';

/** Throws INVALID_ARGUMENT for a document that may not be written. */
export type IndexEntryCheck = (name: DocumentName, fields: Fields, documentBytes: number) => void;

/** All three: https://firebase.google.com/docs/firestore/quotas#indexes, "hard limits". */
const MAX_ENTRIES = 40_000;
/** Of one entry, 7.5 KiB. */
const MAX_ENTRY_BYTES = 7_680;
/** Of all entries of a document, 8 MiB. */
const MAX_SUM_BYTES = 8 * 1024 * 1024;
/** Characters of the fields in a message: more of them than a trailer holds may be in one index. */
const MAX_NAMED = 200;

/**
 * A document of so many bytes, in single-field indexes alone, is within the limits whatever it holds. A field takes two
 * bytes at least and has up to four entries; an element of an array takes one, but for one that is empty, and has up to
 * two: three entries for each byte. None is larger than two names, of the document and of its parent, with a path and a
 * value, each part of the document or as large, and 48 bytes: 3 × 900 × (3 × 900 + 48) is less than 8 MiB.
 */
const SMALL_BYTES = 900;

/**
 * What is documented is enforced. A recording of the service by others (https://github.com/t-k/fireemu) has it
 * otherwise in places: it counts each element of an array twice, refuses some entries of single fields from 5,531 bytes
 * on, and takes a document whose entries have more than 8 MiB in sum.
 */
export function indexEntryCheck(definitions: IndexDefinitions): IndexEntryCheck {
  return (name, fields, documentBytes) => {
    if (documentBytes <= SMALL_BYTES && !hasComposites(definitions, name)) return;
    if (isWithin(indexUsageAtMost(definitions, name, fields, documentBytes))) return;
    // To find the equal ones among many elements takes long, and few documents need it.
    if (isWithin(indexUsage(definitions, name, fields, (elements) => elements))) return;
    const usage = indexUsage(definitions, name, fields, distinctElements);
    if (!isWithin(usage)) throw refusal(usage, `/${name.segments.join('/')}`);
  };
}

const isWithin = ({ count, bytes, largest }: IndexUsage): boolean =>
  count <= MAX_ENTRIES && bytes <= MAX_SUM_BYTES && largest.bytes <= MAX_ENTRY_BYTES;

/**
 * In the service's words as far as they have been seen; no document has them. "too many index entries for entity" is
 * in many reports (https://firebeast.dev/tips/too-many-index-entries-for-entity). "Index entry is too large." is in that
 * recording alone. "Transaction too big. Decrease transaction size." is what the service says of documents and entries of
 * too many bytes in one commit (https://github.com/firebase/firebase-tools/issues/1036); its words for one document whose
 * entries are too large in sum are not known. What is in parentheses is this server's own.
 */
function refusal({ count, bytes, largest }: IndexUsage, path: string): StatusError {
  if (count > MAX_ENTRIES) return invalidArgument(`too many index entries for entity ${path}`);
  if (largest.bytes > MAX_ENTRY_BYTES) {
    const named = largest.fields.join(', ');
    const fields = named.length > MAX_NAMED ? `${named.slice(0, MAX_NAMED)}…` : named;
    return invalidArgument(
      `Index entry is too large. (${fields} of ${path}: ${largest.bytes} bytes, at most ${MAX_ENTRY_BYTES})`,
    );
  }
  return invalidArgument(
    `Transaction too big. Decrease transaction size. (the index entries of ${path}: ${bytes} bytes, at most ${MAX_SUM_BYTES})`,
  );
}
