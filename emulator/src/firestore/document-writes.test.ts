import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { type TestBed, testBed } from './testing.ts';

const parent = 'projects/test-project/databases/(default)/documents';

describe('the methods that write one document', () => {
  let bed: TestBed;
  before(async () => {
    bed = await testBed();
  });
  after(() => bed.close());
  const one = async (method: string, request: object) => (await bed.call(method, request))[0] ?? {};

  test('assign an ID of 20 letters and digits, another for each document', async () => {
    const request = { parent, collectionId: 'assigned', document: { fields: {} } };
    const names = await Promise.all(
      [1, 2, 3].map(async () => String((await one('CreateDocument', request))['name'])),
    );
    assert.equal(new Set(names).size, 3);
    for (const name of names) assert.match(name, /\/assigned\/[A-Za-z0-9]{20}$/);
  });

  test('answer the document as the commit left it, although another one follows at once', async () => {
    const name = `${parent}/raced/a`;
    const update = (n: number) =>
      one('UpdateDocument', { document: { name, fields: { n: { integerValue: n } } } });
    const answers = await Promise.all([1, 2, 3].map(update));
    const seen = answers.map(
      (answer) => (answer['fields'] as Record<string, { integerValue: string }>)['n']?.integerValue,
    );
    assert.deepEqual(seen, ['1', '2', '3']);
  });

  test('keep the create time of a document that is updated', async () => {
    const name = `${parent}/kept/a`;
    const created = await one('CreateDocument', {
      parent,
      collectionId: 'kept',
      documentId: 'a',
      document: { fields: {} },
    });
    const updated = await one('UpdateDocument', { document: { name, fields: { n: { integerValue: 1 } } } });
    assert.deepEqual(updated['createTime'], created['createTime']);
    assert.notDeepEqual(updated['updateTime'], created['updateTime']);
  });

  test('refuse names, masks and requests that are not legal', async () => {
    const refused: [string, object, RegExp][] = [
      ['CreateDocument', { parent: `${parent}/c`, collectionId: 'c' }, /not a parent/],
      ['CreateDocument', { parent, collectionId: '' }, /empty segment/],
      ['CreateDocument', { parent, collectionId: 'a/b' }, /slash/],
      ['CreateDocument', { parent, collectionId: 'c', documentId: 'a/b' }, /not a document/],
      ['CreateDocument', { parent, collectionId: 'c', document: { name: 'x' } }, /must not be set/],
      ['UpdateDocument', {}, /needs a document/],
      [
        'UpdateDocument',
        { document: { name: `${parent}/c/a` }, mask: { fieldPaths: ['.'] } },
        /not a field path/,
      ],
      ['DeleteDocument', { name: 'c/a' }, /not a database/],
    ];
    for (const [method, request, message] of refused) {
      await assert.rejects(one(method, request), { code: status.INVALID_ARGUMENT, message }, method);
    }
    assert.equal((await bed.db.collection('c').get()).size, 0);
  });
});
