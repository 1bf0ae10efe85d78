import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Answer, type TestBed, testBed } from './testing.ts';

const [INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, UNIMPLEMENTED] = [3, 5, 6, 12];
const database = 'projects/p/databases/d';
const name = (path: string): string => `${database}/documents/${path}`;
const integer = (n: number | string) => ({ integerValue: String(n) });
const update = (path: string, fields: object, more: object = {}): object => ({
  update: { name: name(path), fields },
  ...more,
});

describe('the wire', () => {
  let bed: TestBed;
  before(async () => {
    bed = await testBed();
  });
  after(() => bed.close());

  const commit = async (...writes: object[]): Promise<Answer> => {
    const [answer] = await bed.call('Commit', { database, writes });
    assert.ok(answer !== undefined);
    return answer;
  };
  const fields = async (path: string): Promise<unknown> =>
    (await bed.call('GetDocument', { name: name(path) }))[0]?.['fields'];
  const results = (answer: Answer) =>
    answer['writeResults'] as { updateTime: unknown; transformResults: Record<string, unknown>[] }[];

  test('applies every transform, also as a write of its own, and reports each result', async () => {
    await commit(update('t/a', { low: integer(5), high: { doubleValue: 2.5 }, same: integer(3) }));
    const transforms = [
      { fieldPath: 'low', maximum: integer(7) },
      { fieldPath: 'high', minimum: integer(2) },
      { fieldPath: 'same', maximum: { doubleValue: 3 } },
      { fieldPath: 'fresh', minimum: { doubleValue: -1.5 } },
      { fieldPath: 'low', increment: integer(1) },
      { fieldPath: 'list', appendMissingElements: { values: [integer(1), { doubleValue: 1 }] } },
      { fieldPath: '`at`.time', setToServerValue: 'REQUEST_TIME' },
    ];
    const answer = await commit({ transform: { document: name('t/a'), fieldTransforms: transforms } });
    const sent = results(answer)[0]?.transformResults.map((value) => value[String(value['valueType'])]);
    assert.deepEqual(sent, ['7', '2', '3', -1.5, '8', 'NULL_VALUE', answer['commitTime']]);
    const stored = (await fields('t/a')) as Record<string, unknown>;
    assert.deepEqual(stored['same'], { valueType: 'integerValue', integerValue: '3' });
    assert.deepEqual(
      Object.keys(stored).sort((a, b) => (a < b ? -1 : 1)),
      ['at', 'fresh', 'high', 'list', 'low', 'same'],
    );
  });

  test('writes one document several times in a commit, each on top of the one before', async () => {
    const answer = await commit(
      update('multi/a', { n: integer(1) }, { currentDocument: { exists: false } }),
      update(
        'multi/a',
        {},
        { updateMask: { fieldPaths: [] }, updateTransforms: [{ fieldPath: 'n', increment: integer(1) }] },
      ),
      { delete: name('multi/b') },
    );
    assert.deepEqual(await fields('multi/a'), { n: { valueType: 'integerValue', integerValue: '2' } });
    assert.deepEqual(
      results(answer).map(({ updateTime }) => updateTime),
      [answer['commitTime'], answer['commitTime'], null],
    );
  });

  test('deletes what a mask names and the write does not carry', async () => {
    await commit(
      update('mask/a', {
        keep: integer(1),
        'odd.name': { mapValue: { fields: { x: integer(1), y: integer(2) } } },
      }),
    );
    await commit(
      update(
        'mask/a',
        { ignored: integer(9) },
        { updateMask: { fieldPaths: ['`odd.name`.x', 'gone.deep'] } },
      ),
    );
    const stored = (await fields('mask/a')) as Record<string, { mapValue: { fields: object } }>;
    assert.deepEqual(Object.keys(stored['odd.name']?.mapValue.fields ?? {}), ['y']);
    assert.deepEqual(Object.keys(stored).length, 2);
  });

  test('answers the writes of a batch one by one', async () => {
    await commit(update('batch/a', {}));
    const writes = [
      update('batch/a', {}, { currentDocument: { exists: false } }),
      update('batch/b', { n: integer(1) }),
      update('batch/__c__', {}),
    ];
    const [answer] = await bed.call('BatchWrite', { database, writes });
    const statuses = answer?.['status'] as { code: number }[];
    const codes = statuses.map(({ code }) => code);
    assert.deepEqual(codes, [ALREADY_EXISTS, 0, INVALID_ARGUMENT]);
    const twice = [update('batch/a', {}), { delete: name('batch/a') }];
    await assert.rejects(bed.call('BatchWrite', { database, writes: twice }), { code: INVALID_ARGUMENT });
  });

  test('answers a read time and the missing documents', async () => {
    await commit(update('reads/a', { n: integer(1) }));
    const documents = [name('reads/a'), name('reads/none')];
    const answers = await bed.call('BatchGetDocuments', {
      database,
      documents,
      newTransaction: { readOnly: {} },
    });
    assert.equal(answers.length, 2);
    assert.ok(answers.every(({ readTime }) => readTime !== null));
    assert.equal(answers.find(({ result }) => result === 'missing')?.['missing'], name('reads/none'));
    assert.deepEqual(
      answers.map(({ transaction }) => (transaction as Buffer).length > 0),
      [true, false],
    );
    const [empty] = await bed.call('RunQuery', {
      parent: `${database}/documents`,
      structuredQuery: { from: [{ collectionId: 'nothing' }] },
      newTransaction: { readWrite: {} },
    });
    const begun = empty?.['transaction'] as Buffer;
    assert.ok(begun.length > 0 && empty?.['readTime'] !== null);
    await bed.call('Rollback', { database, transaction: begun });
    await assert.rejects(bed.call('GetDocument', { name: name('reads/none') }), { code: NOT_FOUND });
  });

  test('reads at a read time what was there then, and refuses the future', async () => {
    const first = (await commit(update('past/a', { n: integer(1) })))['commitTime'];
    const at = (readTime: unknown) =>
      bed.call('BatchGetDocuments', { database, documents: [name('past/a')], readTime });
    const [answer] = await at(first);
    assert.deepEqual(answer?.['readTime'], first);
    await commit(update('past/a', { n: integer(2) }));
    const [earlier] = (await at(first)) as { found: { fields: Record<string, { integerValue: string }> } }[];
    assert.equal(earlier?.found.fields['n']?.integerValue, '1');
    await assert.rejects(at({ seconds: '99999999999', nanos: 0 }), { code: INVALID_ARGUMENT });
  });

  test('refuses values, names, paths and writes that are not legal, by name', async () => {
    const refused: [object, RegExp][] = [
      [update('r/a', { v: {} }), /fields.v: a value of type \(not set\)/],
      [update('r/a', { v: { fieldReferenceValue: 'x' } }), /fieldReferenceValue/],
      [update('r/a', { v: { geoPointValue: { latitude: 91 } } }), /latitude 91/],
      [update('r/a', { v: { referenceValue: 'users/u1' } }), /not the name of a document/],
      [
        update('r/a', { v: { arrayValue: { values: [{ arrayValue: {} }] } } }),
        /directly contain another array/,
      ],
      [update('r/a', { '': integer(1) }), /may not be empty/],
      [update('r', {}), /even number of segments/],
      [update('r/..', {}), /may not be "\.\."/],
      [update('r/a', {}, { updateMask: { fieldPaths: ['a..b'] } }), /"a\.\.b" is not a field path/],
      [
        update('r/a', {}, { updateTransforms: [{ fieldPath: 'n', increment: { stringValue: '1' } }] }),
        /integer or a double/,
      ],
      [update('r/a', {}, { updateTransforms: [{ fieldPath: 'n' }] }), /transform \(not set\)/],
      [
        update('r/a', {}, { currentDocument: { updateTime: { seconds: '1', nanos: 1 } } }),
        /finer than a microsecond/,
      ],
      [{ delete: name('r/a'), updateMask: { fieldPaths: [] } }, /go with an update only/],
      [{}, /operation \(not set\)/],
      [{ update: { name: 'projects/p/databases/other/documents/r/a', fields: {} } }, /is not below/],
    ];
    for (const [write, message] of refused) {
      await assert.rejects(commit(write), { code: INVALID_ARGUMENT, details: message });
    }
    let deep: object = integer(1);
    for (let i = 0; i < 21; i++) deep = { mapValue: { fields: { x: deep } } };
    await assert.rejects(commit(update('r/a', { v: deep })), /deeper than 20/);
    assert.equal(bed.server.stats().heldLocks, 0);
  });

  test('answers UNIMPLEMENTED for methods that it does not have', async () => {
    await assert.rejects(bed.call('ExecutePipeline', { database }), { code: UNIMPLEMENTED });
  });
});
