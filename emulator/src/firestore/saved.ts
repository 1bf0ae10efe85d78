/**
 * The state of the Firestore server as plain JSON data. Documents have Google's JSON form; `{}` is a server without any.
 *
 *     databases[]
 *       name        projects/P/databases/D
 *       documents[] Document: name, fields, createTime and updateTime as RFC 3339 to the microsecond
 *       latestTime  the latest time that the database has given out; may be left out
 *
 * Update times are those of before, so that preconditions on them hold or fail as they did; those to come are later
 * than all of them. Documents that a policy expires are deleted when their time comes, or has come.
 *
 * Transactions, listeners and older versions are not kept. A transaction of before has expired, which clients answer by
 * trying again, and a read at a time before the state was loaded is UNIMPLEMENTED.
 */
import {
  accepted,
  assertUnique,
  list,
  optional,
  type Read,
  record,
  refused,
  text,
  time,
  writeMicros,
} from '../saved-json.ts';
import type { Database } from './database.ts';
import type { Doc } from './doc.ts';
import { parseDatabase, parseDocument } from './names.ts';
import { fields, saveFields } from './saved-values.ts';
import { checkDocumentSize } from './size.ts';
import { fromWire, type Microseconds } from './time.ts';

type ParsedDatabase = Readonly<{ name: string; docs: readonly Doc[]; latestTime: Microseconds }>;

/** Numbers of microseconds are exact until the year 2255. */
const LATEST: Microseconds = Number.MAX_SAFE_INTEGER;

const micros: Read<Microseconds> = (value, place) => {
  const micros = accepted(place, () => fromWire(time(value, place), 'the time'));
  if (micros >= 0 && micros <= LATEST) return micros;
  throw refused(place, value, 'a time from 1970 to the year 2255');
};

const DOCUMENT = record({
  name: text,
  fields: optional(fields, fields({}, '')),
  createTime: micros,
  updateTime: micros,
});

const STATE = record({
  databases: optional(
    list(
      record({
        name: text,
        documents: optional(list(DOCUMENT), []),
        latestTime: optional(micros, 0),
      }),
    ),
    [],
  ),
});

export function saveFirestore(databases: ReadonlyMap<string, Database>): object {
  return { databases: [...databases].map(([name, database]) => saveDatabase(name, database)) };
}

function saveDatabase(name: string, database: Database): object {
  const { view } = database.current();
  const documents = [...view.collections()].flatMap((path) => [...view.collection(path)].map(saveDocument));
  const latest = database.latest();
  return { name, documents, ...(latest > 0 && { latestTime: writeMicros(latest) }) };
}

const saveDocument = ({ name, fields: held, createTime, updateTime }: Doc): object => ({
  name: name.full,
  fields: saveFields(held),
  createTime: writeMicros(createTime),
  updateTime: writeMicros(updateTime),
});

/** Throws an error of one line that names the place. */
export function parseFirestore(saved: unknown): readonly ParsedDatabase[] {
  const { databases } = STATE(saved, 'firestore');
  assertUnique(databases, 'firestore.databases', '.name', ({ name }) => name);
  return databases.map(({ name, documents, latestTime }, index) => {
    const place = `firestore.databases[${index}]`;
    accepted(`${place}.name`, () => parseDatabase(name));
    assertUnique(documents, `${place}.documents`, '.name', (document) => document.name);
    const docs = documents.map((document, i) => docOf(document, name, `${place}.documents[${i}]`));
    return { name, docs, latestTime: docs.reduce((time, doc) => Math.max(time, doc.updateTime), latestTime) };
  });
}

function docOf(document: ReturnType<typeof DOCUMENT>, database: string, place: string): Doc {
  const name = accepted(`${place}.name`, () => parseDocument(document.name, database));
  if (document.createTime > document.updateTime) {
    throw refused(`${place}.createTime`, writeMicros(document.createTime), 'a time not after updateTime');
  }
  accepted(place, () => checkDocumentSize(name, document.fields));
  return { ...document, name };
}
