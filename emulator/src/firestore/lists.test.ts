import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Firestore, GeoPoint } from '@google-cloud/firestore';
import { until } from '../until.ts';
import { type Answer, type TestBed, testBed } from './testing.ts';

const INVALID_ARGUMENT = 3;
const database = 'projects/test-project/databases/(default)';
const root = `${database}/documents`;
const group = (collectionId: string) => ({
  from: [{ collectionId, allDescendants: true }],
  orderBy: [{ field: { fieldPath: '__name__' }, direction: 'ASCENDING' }],
});

describe('lists', () => {
  let bed: TestBed;
  let db: Firestore;
  before(async () => {
    bed = await testBed();
    db = bed.db;
    const batch = db.batch();
    for (let i = 0; i < 25; i++) {
      batch.set(db.doc(`rows/d${String(i).padStart(2, '0')}`), { n: i % 5, nested: { i }, x: true });
    }
    batch.set(db.doc('tree/there'), { n: 1 });
    batch.set(db.doc('tree/missing/below/a'), {});
    batch.set(db.doc('tree/gone/deep/b/deeper/c'), {});
    batch.set(db.doc('tree/there/below/d'), {});
    batch.set(db.doc('odd/a'), { 'a b, c': 1, n: 1 });
    await batch.commit();
  });
  after(() => bed.close());

  const documents = (answer: Answer): readonly Answer[] => answer['documents'] as Answer[];
  const idsOf = (answer: Answer): string[] =>
    documents(answer).map(({ name }) => String(name).slice(root.length + 1));
  const list = async (request: object): Promise<Answer> => {
    const [answer] = await bed.call('ListDocuments', { parent: root, collectionId: 'rows', ...request });
    assert.ok(answer !== undefined);
    return answer;
  };
  /** All pages, each given to `between`. */
  async function pages(
    request: object,
    between: () => Promise<unknown> = async () => {},
  ): Promise<string[][]> {
    const all: string[][] = [];
    let pageToken = '';
    do {
      const answer = await list({ ...request, pageToken });
      all.push(idsOf(answer));
      pageToken = String(answer['nextPageToken']);
      await between();
    } while (pageToken !== '' && all.length < 50);
    return all;
  }

  test('documents come in pages by name, each once', async () => {
    const all = await pages({ pageSize: 10 });
    assert.deepEqual(
      all.map((page) => page.length),
      [10, 10, 5],
    );
    assert.deepEqual(
      all.flat(),
      Array.from({ length: 25 }, (_, i) => `rows/d${String(i).padStart(2, '0')}`),
    );
    assert.deepEqual(await pages({ pageSize: 25 }), [all.flat()]);
    assert.equal((await pages({})).flat().length, 25);
  });

  test('pages follow an order, also while documents come and go', async () => {
    const ordered = await pages({ pageSize: 7, orderBy: 'n desc, __name__ desc' });
    assert.deepEqual(ordered.flat().slice(0, 6), [
      'rows/d24',
      'rows/d19',
      'rows/d14',
      'rows/d09',
      'rows/d04',
      'rows/d23',
    ]);
    assert.equal(new Set(ordered.flat()).size, 25);
    let before = 100;
    const moved = await pages({ pageSize: 7, orderBy: 'n desc' }, () =>
      db.doc(`rows/z${--before}`).set({ n: 9 }),
    );
    assert.deepEqual(
      moved.flat(),
      (await pages({ orderBy: 'n desc' })).flat().filter((id) => !id.includes('z')),
    );
    for (; before < 100; before++) await db.doc(`rows/z${before}`).delete();
    assert.deepEqual(idsOf(await list({ collectionId: 'odd', orderBy: '`a b, c`, n asc' })), ['odd/a']);
    await assert.rejects(list({ orderBy: 'n sideways' }), { code: INVALID_ARGUMENT });
  });

  test('pages follow an order over values of every type', async () => {
    const values = [
      null,
      true,
      Number.NaN,
      9_007_199_254_740_993n,
      new Date(5),
      'text',
      Buffer.from([1]),
      db.doc('a/b'),
      new GeoPoint(1, 2),
      [1, 'x'],
      { deep: { er: Buffer.from([2]) } },
    ];
    await Promise.all(values.map((value, i) => db.doc(`types/t${i + 10}`).set({ value })));
    const all = await pages({ collectionId: 'types', pageSize: 1, orderBy: 'value' });
    assert.deepEqual(
      all.flat(),
      values.map((_, i) => `types/t${i + 10}`),
    );
    for (const i of values.keys()) await db.doc(`types/t${i + 10}`).delete();
  });

  test('a mask leaves the fields that it names', async () => {
    const answer = await list({ pageSize: 1, mask: { fieldPaths: ['nested.i', 'absent'] } });
    const integer = { valueType: 'integerValue', integerValue: '0' };
    assert.deepEqual(documents(answer)[0]?.['fields'], {
      nested: { valueType: 'mapValue', mapValue: { fields: { i: integer } } },
    });
  });

  test('without a collection ID all collections of the parent are listed, and no deeper ones', async () => {
    assert.deepEqual(idsOf(await list({ collectionId: '', parent: `${root}/tree/there` })), [
      'tree/there/below/d',
    ]);
    const top = (await pages({ collectionId: '', pageSize: 9 })).flat();
    assert.deepEqual([top.length, top.at(0), top.at(-1)], [27, 'odd/a', 'tree/there']);
  });

  test('missing documents show when asked for: with a name and nothing else', async () => {
    const tree = await db.collection('tree').listDocuments();
    assert.deepEqual(
      tree.map(({ id }) => id),
      ['gone', 'missing', 'there'],
    );
    assert.deepEqual(idsOf(await list({ collectionId: 'tree' })), ['tree/there']);
    const paged = await pages({ collectionId: 'tree', showMissing: true, pageSize: 1 });
    assert.deepEqual(paged, [['tree/gone'], ['tree/missing'], ['tree/there']]);
    const [gone] = documents(await list({ collectionId: 'tree', showMissing: true }));
    assert.deepEqual([gone?.['fields'], gone?.['createTime'], gone?.['updateTime']], [{}, null, null]);
    await assert.rejects(list({ showMissing: true, orderBy: 'n' }), { code: INVALID_ARGUMENT });
    assert.equal((await db.collection('rows').listDocuments()).length, 25);
  });

  test('a list in a transaction holds still until the commit', async () => {
    for (const showMissing of [false, true]) {
      const [begun] = await bed.call('BeginTransaction', { database });
      const transaction = begun?.['transaction'];
      await list({ collectionId: 'tree', transaction, showMissing });
      const written = db.doc('tree/new').set({});
      await until(() => bed.server.stats().waitingRequests === 1, 'the write waits');
      assert.equal(idsOf(await list({ collectionId: 'tree', transaction })).includes('tree/new'), false);
      await bed.call('Commit', { database, transaction });
      await written;
      await db.doc('tree/new').delete();
    }
  });

  test('collection IDs come in pages', async () => {
    assert.deepEqual(
      (await db.listCollections()).map(({ id }) => id),
      ['odd', 'rows', 'tree'],
    );
    assert.deepEqual(
      (await db.doc('tree/gone').listCollections()).map(({ id }) => id),
      ['deep'],
    );
    const [first] = await bed.call('ListCollectionIds', { parent: root, pageSize: 2 });
    assert.deepEqual(first?.['collectionIds'], ['odd', 'rows']);
    const pageToken = first?.['nextPageToken'];
    const [second] = await bed.call('ListCollectionIds', { parent: root, pageSize: 2, pageToken });
    assert.deepEqual([second?.['collectionIds'], second?.['nextPageToken']], [['tree'], '']);
  });

  test('a token of another request, or none at all, is refused', async () => {
    const pageToken = (await list({ pageSize: 1 }))['nextPageToken'];
    for (const request of [{ pageToken: 'nonsense' }, { pageToken, orderBy: 'n' }, { pageSize: -1 }]) {
      await assert.rejects(list(request), { code: INVALID_ARGUMENT, details: /page_/ });
    }
    await assert.rejects(bed.call('ListCollectionIds', { parent: root, pageToken }), {
      code: INVALID_ARGUMENT,
    });
  });

  test('partitions cut a collection group into parts that hold every document once', async () => {
    for (const wanted of [1, 2, 4, 40]) {
      const found: string[] = [];
      let parts = 0;
      for await (const partition of db.collectionGroup('rows').getPartitions(wanted)) {
        parts += 1;
        found.push(...(await partition.toQuery().get()).docs.map(({ id }) => id));
      }
      assert.equal(parts, Math.min(wanted, 25));
      assert.equal(found.length, 25);
      assert.equal(new Set(found).size, 25);
    }
    const none = [];
    for await (const partition of db.collectionGroup('nothing').getPartitions(3)) none.push(partition);
    assert.equal(none.length, 1);
  });

  test('partitions come in pages, and only for what can be partitioned', async () => {
    const ask = async (more: object) =>
      (
        await bed.call('PartitionQuery', {
          parent: root,
          structuredQuery: group('rows'),
          partitionCount: 5,
          ...more,
        })
      )[0];
    const first = await ask({ pageSize: 3 });
    const second = await ask({ pageSize: 3, pageToken: first?.['nextPageToken'] });
    const all = [first, second].flatMap((answer) => answer?.['partitions'] as unknown[]);
    assert.deepEqual(all, (await ask({}))?.['partitions']);
    assert.deepEqual([all.length, second?.['nextPageToken']], [5, '']);
    const refused = [
      { partitionCount: 0 },
      { parent: `${root}/rows/d00` },
      { structuredQuery: { ...group('rows'), limit: { value: 1 } } },
      { structuredQuery: { from: [{ collectionId: 'rows' }] } },
    ];
    for (const request of refused) await assert.rejects(ask(request), { code: INVALID_ARGUMENT });
  });
});
