/**
 * What Eventarc sends for a document that was created: a CloudEvent in binary mode
 * (https://cloud.google.com/eventarc/docs/event-format), whose body is a `DocumentEventData` in protobuf
 * (https://github.com/googleapis/google-cloudevents/blob/main/proto/google/events/cloud/firestore/v1/data.proto).
 *
 * The `Document` of an event has the fields, numbers and types of google.firestore.v1.Document, so it is written by that
 * message's own serializer. Pure, but for the ID that the caller gives.
 */
import type { ServiceDefinition } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { writeMicros } from '../saved-json.ts';
import type { Doc } from './doc.ts';
import { toWireDocument } from './requests.ts';

const CREATED = 'google.cloud.firestore.document.v1.created';

const SCHEMA =
  'https://github.com/googleapis/google-cloudevents/blob/main/proto/google/events/cloud/firestore/v1/data.proto';
/** Of the database; Eventarc names it, and nothing here has one. */
const LOCATION = 'us-central1';

/** `value`, field 1 of DocumentEventData, is a message: its length and its bytes follow. */
const VALUE_TAG = 1 * 8 + 2;

export type SentEvent = Readonly<{ headers: Readonly<Record<string, string>>; body: Buffer }>;

export function createdEvent(definition: ServiceDefinition, doc: Doc, id: string): SentEvent {
  const [, project = '', , database = ''] = doc.name.full.split('/');
  const document = doc.name.segments.join('/');
  const attributes = {
    specversion: '1.0',
    id,
    type: CREATED,
    source: `//firestore.googleapis.com/projects/${project}/databases/${database}`,
    subject: `documents/${document}`,
    time: writeMicros(doc.createTime),
    dataschema: SCHEMA,
    project,
    location: LOCATION,
    database,
    namespace: '(default)',
    document,
  };
  return {
    headers: {
      ...Object.fromEntries(
        Object.entries(attributes).map(([name, value]) => [`ce-${name}`, headerValue(value)]),
      ),
      'content-type': 'application/protobuf',
    },
    body: dataOf(definition, doc),
  };
}

function dataOf(definition: ServiceDefinition, doc: Doc): Buffer {
  const serialize = definition['GetDocument']?.responseSerialize;
  if (serialize === undefined) throw new Error('the service has no method GetDocument');
  const document = serialize(toWireDocument(doc, undefined));
  return Buffer.from(protobuf.Writer.create().uint32(VALUE_TAG).bytes(document).finish());
}

/**
 * As the HTTP binding of CloudEvents writes what a header may not hold
 * (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md#3132-http-header-values).
 */
const headerValue = (text: string): string =>
  text.replaceAll(/[^\x21\x23\x24\x26-\x7e]/gu, (character) =>
    [...Buffer.from(character)]
      .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
      .join(''),
  );
