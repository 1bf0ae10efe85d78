/** The methods on one document, and BatchGetDocuments. */
import assert from 'node:assert/strict';
import { accepted, type FirestoreCase, int, map, of, refused, text } from '../expect.ts';
import { CODES, METHODS } from '../sources.ts';
import type { FirestoreWorld } from '../world.ts';

const make = of('Single documents');
const parentOf = ({ database }: FirestoreWorld): string => `${database}/documents`;
const keys = (document: Readonly<Record<string, unknown>>): string =>
  Object.keys(document['fields'] as object)
    .sort()
    .join();

export const documentCases: readonly FirestoreCase[] = [
  make('GetDocument answers the document with its times', METHODS, async ({ db, one, doc }) => {
    await db.doc('c/a').set({ n: 1 });
    const found = await accepted(one('GetDocument', { name: doc('c/a') }), 'GetDocument');
    assert.equal(found['name'], doc('c/a'));
    assert.equal(keys(found), 'n');
    assert.deepEqual(
      found['createTime'],
      found['updateTime'],
      'create and update time of a new document differ',
    );
  }),
  make('GetDocument of a missing document answers NOT_FOUND', CODES, async ({ one, doc }) => {
    await refused(one('GetDocument', { name: doc('c/none') }), 'NOT_FOUND', 'a missing document');
  }),
  make('GetDocument answers only the fields of the mask', METHODS, async ({ db, one, doc }) => {
    await db.doc('c/a').set({ a: 1, b: { x: 1, y: 2 }, c: 3 });
    const mask = { fieldPaths: ['a', 'b.x', 'none'] };
    const found = await one('GetDocument', { name: doc('c/a'), mask });
    assert.equal(keys(found), 'a,b');
    const { fields } =
      (found['fields'] as Record<string, { mapValue: { fields: object } }>)['b']?.mapValue ?? {};
    assert.deepEqual(Object.keys(fields ?? {}), ['x']);
  }),
  make('GetDocument of the name of a collection answers INVALID_ARGUMENT', METHODS, async ({ one, doc }) => {
    await refused(one('GetDocument', { name: doc('c') }), 'INVALID_ARGUMENT', 'the name of a collection');
  }),
  make(
    'GetDocument with a mask that is no field path answers INVALID_ARGUMENT',
    METHODS,
    async ({ db, one, doc }) => {
      await db.doc('c/a').set({ a: 1 });
      const request = { name: doc('c/a'), mask: { fieldPaths: ['a..b'] } };
      await refused(one('GetDocument', request), 'INVALID_ARGUMENT', 'the mask a..b');
    },
  ),
  make('CreateDocument creates it under the ID that is given', METHODS, async (world) => {
    const request = {
      parent: parentOf(world),
      collectionId: 'c',
      documentId: 'a',
      document: { fields: { n: int(1) } },
    };
    const created = await accepted(world.one('CreateDocument', request), 'CreateDocument');
    assert.equal(created['name'], world.doc('c/a'));
    assert.deepEqual((await world.db.doc('c/a').get()).data(), { n: 1 });
  }),
  make('CreateDocument assigns an ID when none is given', METHODS, async (world) => {
    const request = { parent: parentOf(world), collectionId: 'c', document: { fields: { n: int(1) } } };
    const created = await accepted(world.one('CreateDocument', request), 'CreateDocument');
    assert.match(String(created['name']), /\/documents\/c\/[^/]+$/);
    assert.equal((await world.db.collection('c').get()).size, 1);
  }),
  make('CreateDocument answers only the fields of the mask', METHODS, async (world) => {
    const document = { fields: { a: int(1), b: int(2) } };
    const request = {
      parent: parentOf(world),
      collectionId: 'c',
      documentId: 'a',
      document,
      mask: { fieldPaths: ['b'] },
    };
    assert.equal(keys(await accepted(world.one('CreateDocument', request), 'CreateDocument')), 'b');
    assert.deepEqual((await world.db.doc('c/a').get()).data(), { a: 1, b: 2 });
  }),
  make('CreateDocument of a document that exists answers ALREADY_EXISTS', CODES, async (world) => {
    await world.db.doc('c/a').set({ n: 1 });
    const request = { parent: parentOf(world), collectionId: 'c', documentId: 'a', document: { fields: {} } };
    await refused(world.one('CreateDocument', request), 'ALREADY_EXISTS', 'a document that exists');
  }),
  make('CreateDocument below a document creates it in its collection', METHODS, async (world) => {
    const request = {
      parent: world.doc('c/a'),
      collectionId: 'sub',
      documentId: 'b',
      document: { fields: {} },
    };
    const created = await accepted(world.one('CreateDocument', request), 'CreateDocument');
    assert.equal(created['name'], world.doc('c/a/sub/b'));
  }),
  make('CreateDocument with a name in the document answers INVALID_ARGUMENT', METHODS, async (world) => {
    const document = { name: world.doc('c/a'), fields: {} };
    const request = { parent: parentOf(world), collectionId: 'c', documentId: 'a', document };
    await refused(world.one('CreateDocument', request), 'INVALID_ARGUMENT', 'a document with its name set');
  }),
  make('CreateDocument with an ID that is not legal answers INVALID_ARGUMENT', METHODS, async (world) => {
    const request = {
      parent: parentOf(world),
      collectionId: 'c',
      documentId: '__a__',
      document: { fields: {} },
    };
    await refused(world.one('CreateDocument', request), 'INVALID_ARGUMENT', 'the ID __a__');
  }),
  make('UpdateDocument creates a document that is missing', METHODS, async ({ db, one, doc }) => {
    const document = { name: doc('c/a'), fields: { n: int(1) } };
    await accepted(one('UpdateDocument', { document }), 'UpdateDocument');
    assert.deepEqual((await db.doc('c/a').get()).data(), { n: 1 });
  }),
  make('UpdateDocument without a mask replaces all fields', METHODS, async ({ db, one, doc }) => {
    await db.doc('c/a').set({ a: 1, b: 2 });
    await accepted(
      one('UpdateDocument', { document: { name: doc('c/a'), fields: { a: int(5) } } }),
      'UpdateDocument',
    );
    assert.deepEqual((await db.doc('c/a').get()).data(), { a: 5 });
  }),
  make(
    'UpdateDocument changes, and deletes, only the fields of its update mask',
    METHODS,
    async ({ db, one, doc }) => {
      await db.doc('c/a').set({ a: 1, b: { x: 1, y: 2 }, c: 3 });
      const document = { name: doc('c/a'), fields: { b: map({ x: text('new') }), d: int(9) } };
      const request = { document, updateMask: { fieldPaths: ['b.x', 'c'] } };
      const updated = await accepted(one('UpdateDocument', request), 'UpdateDocument');
      assert.equal(keys(updated), 'a,b');
      assert.deepEqual((await db.doc('c/a').get()).data(), { a: 1, b: { x: 'new', y: 2 } });
    },
  ),
  make(
    'UpdateDocument of a missing document that must exist answers NOT_FOUND',
    CODES,
    async ({ one, doc }) => {
      const request = { document: { name: doc('c/a'), fields: {} }, currentDocument: { exists: true } };
      await refused(one('UpdateDocument', request), 'NOT_FOUND', 'a missing document');
    },
  ),
  make('DeleteDocument deletes, and answers OK for what is missing', METHODS, async ({ db, one, doc }) => {
    await db.doc('c/a').set({ n: 1 });
    for (let i = 0; i < 2; i += 1)
      await accepted(one('DeleteDocument', { name: doc('c/a') }), 'DeleteDocument');
    assert.equal((await db.doc('c/a').get()).exists, false);
  }),
  make(
    'DeleteDocument of a missing document that must exist answers NOT_FOUND',
    CODES,
    async ({ one, doc }) => {
      const request = { name: doc('c/a'), currentDocument: { exists: true } };
      await refused(one('DeleteDocument', request), 'NOT_FOUND', 'a missing document');
    },
  ),
  make('DeleteDocument of another version answers FAILED_PRECONDITION', CODES, async ({ db, one, doc }) => {
    const { writeTime } = await db.doc('c/a').set({ n: 1 });
    await db.doc('c/a').set({ n: 2 });
    const updateTime = { seconds: String(writeTime.seconds), nanos: writeTime.nanoseconds };
    const request = { name: doc('c/a'), currentDocument: { updateTime } };
    await refused(one('DeleteDocument', request), 'FAILED_PRECONDITION', 'an old update time');
  }),
  make(
    'BatchGetDocuments answers what is found and what is missing, at one read time',
    METHODS,
    async (world) => {
      await world.db.doc('c/a').set({ n: 1 });
      const documents = ['c/a', 'c/b'].map(world.doc);
      const answers = await world.call('BatchGetDocuments', { database: world.database, documents });
      assert.deepEqual(
        answers.map(({ result }) => String(result)).toSorted((a, b) => (a < b ? -1 : 1)),
        ['found', 'missing'],
      );
      const times = new Set(answers.map(({ readTime }) => JSON.stringify(readTime)));
      assert.equal(times.size, 1, `there were ${times.size} read times`);
    },
  ),
  make(
    'BatchGetDocuments answers a name that is given twice once',
    METHODS,
    async ({ call, database, doc }) => {
      const answers = await call('BatchGetDocuments', { database, documents: [doc('c/a'), doc('c/a')] });
      assert.equal(answers.length, 1);
    },
  ),
  make(
    'BatchGetDocuments of another database’s document answers INVALID_ARGUMENT',
    METHODS,
    async (world) => {
      const documents = [`projects/${world.project}/databases/other/documents/c/a`];
      const answer = world.call('BatchGetDocuments', { database: world.database, documents });
      await refused(answer, 'INVALID_ARGUMENT', 'a document of another database');
    },
  ),
  make('The client reads many documents in their order', METHODS, async ({ db }) => {
    await db.doc('c/b').set({ n: 2 });
    const all = await db.getAll(db.doc('c/a'), db.doc('c/b'), db.doc('c/a'));
    assert.equal(all.map(({ id, exists }) => `${id} ${exists}`).join(), 'a false,b true,a false');
  }),
];
