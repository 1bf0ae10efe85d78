/**
 * An event of Firestore as Eventarc delivers it: a CloudEvent in headers (`ce-type` …), and a protobuf as the body, of
 * which the document's name is read and nothing else. Pure: the same bytes have the same answer.
 *
 * https://cloud.google.com/eventarc/docs/event-format, and for the body
 * https://github.com/googleapis/google-cloudevents/blob/main/proto/google/events/cloud/firestore/v1/data.proto:
 * `DocumentEventData { Document value = 1; … }`, `Document { string name = 1; … }`. The fields of the document are
 * skipped: an event may be delivered days after its commit, and what it says of them is not what they are.
 */
import { PermanentError } from '../errors.ts';

export type DocumentEvent = Readonly<{
  /** Names in any case. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** As received: not parsed, not decoded. */
  rawBody: Uint8Array;
}>;

export type EventDocument = Readonly<{
  project: string;
  database: string;
  /** Its path below `/documents`. */
  collection: string;
  id: string;
}>;

/** Both have the same body. */
const CREATED = 'google.cloud.firestore.document.v1.created';
const CREATED_TYPES: readonly string[] = [CREATED, `${CREATED}.withAuthContext`];
/** Eventarc sends events of Firestore in no other form. */
const PROTOBUF = 'application/protobuf';

const VALUE = 1;
const NAME = 1;

/** The document that was created. Throws PermanentError `EVENT_REFUSED` for any other event, and for a body that is none. */
export function readCreatedDocument({ headers, rawBody }: DocumentEvent): EventDocument {
  const type = headerOf(headers, 'ce-type');
  if (type === undefined || !CREATED_TYPES.includes(type)) {
    throw refusedEvent(`header ce-type is ${shown(type)}; accepted: ${CREATED}`);
  }
  const contentType = headerOf(headers, 'content-type');
  if (contentType?.split(';', 1)[0]?.trim().toLowerCase() !== PROTOBUF) {
    throw refusedEvent(`header content-type is ${shown(contentType)}; accepted: ${PROTOBUF}`);
  }
  const value = fieldOf(rawBody, VALUE);
  if (value === undefined) throw refusedEvent('the body has no document (field 1, value)');
  const name = fieldOf(value, NAME);
  return documentOf(name === undefined ? '' : textOf(name));
}

function documentOf(name: string): EventDocument {
  const [, project, database, path] = NAMED.exec(name) ?? [];
  const segments = path?.split('/') ?? [];
  const isDocument = segments.length >= 2 && segments.length % 2 === 0 && !segments.includes('');
  if (project === undefined || database === undefined || !isDocument) {
    const accepted = 'projects/PROJECT/databases/DATABASE/documents/COLLECTION/ID';
    throw refusedEvent(`the name of the document is ${shown(name)}; accepted: ${accepted}`);
  }
  return { project, database, collection: segments.slice(0, -1).join('/'), id: segments.at(-1) ?? '' };
}

const NAMED = /^projects\/([^/]+)\/databases\/([^/]+)\/documents\/(.+)$/s;

function headerOf(headers: DocumentEvent['headers'], name: string): string | undefined {
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return typeof found === 'string' ? found : found?.join(', ');
}

/** How a field is written: https://protobuf.dev/programming-guides/encoding/#structure. */
const VARINT = 0;
const FIXED_64 = 1;
const BYTES = 2;
const FIXED_32 = 5;

/** The bytes of a field of a message; where it is there more than once the last counts. */
function fieldOf(message: Uint8Array, wanted: number): Uint8Array | undefined {
  let found: Uint8Array | undefined;
  for (let at = 0; at < message.length; ) {
    const tag = varintAt(message, at);
    const [number, kind] = [Math.floor(tag.value / 8), tag.value % 8];
    const length = kind === BYTES ? varintAt(message, tag.end) : undefined;
    const from = length?.end ?? tag.end;
    const to = from + (length?.value ?? lengthOf(message, kind, from));
    if (number === 0 || to > message.length) throw notProtobuf();
    if (number === wanted && kind === BYTES) found = message.subarray(from, to);
    at = to;
  }
  return found;
}

function lengthOf(message: Uint8Array, kind: number, from: number): number {
  switch (kind) {
    case VARINT:
      return varintAt(message, from).end - from;
    case FIXED_64:
      return 8;
    case FIXED_32:
      return 4;
    default:
      // Groups, which this message has none of, and kinds that there are not.
      throw notProtobuf();
  }
}

/** Seven bits in a byte, the lowest first; ten bytes hold 64 bits. */
const MOST_BYTES = 10;

function varintAt(message: Uint8Array, from: number): Readonly<{ value: number; end: number }> {
  let value = 0;
  for (let index = 0; index < MOST_BYTES; index += 1) {
    const byte = message[from + index];
    if (byte === undefined) break;
    // Exact up to 2^53; what is above is no length that a body has.
    value += (byte % 128) * 128 ** index;
    if (byte < 128) return { value, end: from + index + 1 };
  }
  throw notProtobuf();
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw refusedEvent('the name of the document is not UTF-8', error);
  }
}

const notProtobuf = (): PermanentError => refusedEvent('the body is no DocumentEventData in protobuf');

export const refusedEvent = (text: string, cause?: unknown): PermanentError =>
  new PermanentError('EVENT_REFUSED', text, { cause });

/** For error texts: short. */
export function shown(value: string | undefined): string {
  const text = value === undefined ? 'missing' : JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
