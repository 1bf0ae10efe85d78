/** ListDocuments, ListCollectionIds and PartitionQuery. */
import assert from 'node:assert/strict';
import { type FirestoreCase, of, refused } from '../expect.ts';
import { METHODS } from '../sources.ts';
import type { FirestoreWorld } from '../world.ts';

const make = of('Lists and partitions');
type Page = Readonly<{
  documents: readonly Readonly<{ name: string; fields: object; createTime: unknown }>[];
  nextPageToken: string;
}>;
type Ids = Readonly<{ collectionIds: readonly string[]; nextPageToken: string }>;
type Parts = Readonly<{
  partitions: readonly Readonly<{ values: readonly object[] }>[];
  nextPageToken: string;
}>;

async function fill({ db }: FirestoreWorld, ...paths: readonly string[]): Promise<void> {
  const batch = db.batch();
  for (const [i, path] of paths.entries()) batch.set(db.doc(path), { i, n: -i });
  await batch.commit();
}

const root = ({ database }: FirestoreWorld): string => `${database}/documents`;
const listed = async (world: FirestoreWorld, request: object): Promise<Page> =>
  (await world.one('ListDocuments', { parent: root(world), collectionId: 'c', ...request })) as Page;
const names = ({ documents }: Page): string => documents.map(({ name }) => name.split('/').at(-1)).join();

/** All pages, one after the other. */
async function pages(world: FirestoreWorld, request: object): Promise<string[]> {
  const seen: string[] = [];
  let pageToken = '';
  do {
    const page = await listed(world, { ...request, pageToken });
    seen.push(names(page));
    pageToken = page.nextPageToken;
  } while (pageToken !== '' && seen.length < 20);
  return seen;
}

const partitioned = async (world: FirestoreWorld, request: object): Promise<Parts> =>
  (await world.one('PartitionQuery', {
    parent: root(world),
    structuredQuery: {
      from: [{ collectionId: 'c', allDescendants: true }],
      orderBy: [{ field: { fieldPath: '__name__' }, direction: 'ASCENDING' }],
    },
    partitionCount: '3',
    ...request,
  })) as Parts;

export const listCases: readonly FirestoreCase[] = [
  make('ListDocuments lists a collection by name', METHODS, async (world) => {
    await fill(world, 'c/b', 'c/a', 'c/a/c/x', 'd/z');
    assert.equal(names(await listed(world, {})), 'a,b');
  }),
  make('ListDocuments lists below a document', METHODS, async (world) => {
    await fill(world, 'c/a/s/2', 'c/a/s/1', 'c/b/s/3');
    assert.equal(names(await listed(world, { parent: world.doc('c/a'), collectionId: 's' })), '1,2');
  }),
  make('ListDocuments gives pages of the size that is asked', METHODS, async (world) => {
    await fill(world, 'c/a', 'c/b', 'c/c', 'c/d', 'c/e');
    assert.deepEqual((await pages(world, { pageSize: 2 })).filter(Boolean), ['a,b', 'c,d', 'e']);
  }),
  make('ListDocuments follows order_by, over pages', METHODS, async (world) => {
    await fill(world, 'c/a', 'c/b', 'c/c');
    assert.deepEqual((await pages(world, { pageSize: 2, orderBy: 'n' })).filter(Boolean), ['c,b', 'a']);
  }),
  make('ListDocuments follows a descending order_by', METHODS, async (world) => {
    await fill(world, 'c/a', 'c/b', 'c/c');
    assert.equal(names(await listed(world, { orderBy: 'i desc' })), 'c,b,a');
  }),
  make('ListDocuments answers the fields of the mask', METHODS, async (world) => {
    await fill(world, 'c/a');
    const { documents } = await listed(world, { mask: { fieldPaths: ['i'] } });
    assert.deepEqual(Object.keys(documents[0]?.fields ?? {}), ['i']);
  }),
  make(
    'ListDocuments with show_missing lists documents that only have something below them',
    METHODS,
    async (world) => {
      await fill(world, 'c/a', 'c/m/s/1');
      const page = await listed(world, { showMissing: true });
      assert.equal(names(page), 'a,m');
      assert.equal(page.documents[1]?.createTime ?? null, null);
      assert.equal(names(await listed(world, {})), 'a');
    },
  ),
  make('The client lists document references, also missing ones', METHODS, async (world) => {
    await fill(world, 'c/a', 'c/m/s/1');
    const all = await world.db.collection('c').listDocuments();
    assert.equal(all.map(({ id }) => id).join(), 'a,m');
  }),
  make('show_missing with order_by answers INVALID_ARGUMENT', METHODS, async (world) => {
    await refused(listed(world, { showMissing: true, orderBy: 'n' }), 'INVALID_ARGUMENT', 'both');
  }),
  make('ListDocuments with a page token that is none answers INVALID_ARGUMENT', METHODS, async (world) => {
    await refused(listed(world, { pageToken: 'nonsense' }), 'INVALID_ARGUMENT', 'the token');
  }),
  make('ListDocuments with a negative page size answers INVALID_ARGUMENT', METHODS, async (world) => {
    await refused(listed(world, { pageSize: -1 }), 'INVALID_ARGUMENT', 'page size -1');
  }),
  make('ListCollectionIds lists the collections of the root', METHODS, async (world) => {
    await fill(world, 'b/1', 'a/1', 'a/1/s/1');
    const { collectionIds } = (await world.one('ListCollectionIds', { parent: root(world) })) as Ids;
    assert.deepEqual([...collectionIds].sort(), ['a', 'b']);
  }),
  make('ListCollectionIds lists those below a document, also a missing one', METHODS, async (world) => {
    await fill(world, 'a/1/s/1', 'a/1/t/1', 'a/2/u/1');
    const all = await world.db.doc('a/1').listCollections();
    assert.deepEqual(all.map(({ id }) => id).sort(), ['s', 't']);
  }),
  make('ListCollectionIds gives pages', METHODS, async (world) => {
    await fill(world, 'a/1', 'b/1', 'c/1');
    const first = (await world.one('ListCollectionIds', { parent: root(world), pageSize: 2 })) as Ids;
    assert.equal(first.collectionIds.length, 2);
    const { nextPageToken: pageToken } = first;
    const second = (await world.one('ListCollectionIds', {
      parent: root(world),
      pageSize: 2,
      pageToken,
    })) as Ids;
    assert.deepEqual([...first.collectionIds, ...second.collectionIds].sort(), ['a', 'b', 'c']);
  }),
  make(
    'ListCollectionIds below the name of a collection answers INVALID_ARGUMENT',
    METHODS,
    async (world) => {
      await refused(
        world.one('ListCollectionIds', { parent: world.doc('c') }),
        'INVALID_ARGUMENT',
        'a collection',
      );
    },
  ),
  make('The parts of PartitionQuery together are the whole, each document once', METHODS, async (world) => {
    await fill(world, ...Array.from({ length: 40 }, (_, i) => `c/${String(i).padStart(2, '0')}`));
    const seen: string[] = [];
    for await (const part of world.db.collectionGroup('c').getPartitions(4)) {
      seen.push(...(await part.toQuery().get()).docs.map(({ id }) => id));
    }
    assert.equal(seen.length, 40);
    assert.equal(new Set(seen).size, 40);
  }),
  make('PartitionQuery gives at most as many partition points as are asked', METHODS, async (world) => {
    await fill(world, ...Array.from({ length: 40 }, (_, i) => `c/${i}`));
    const { partitions } = await partitioned(world, {});
    assert.ok(partitions.length <= 3, `it gave ${partitions.length}`);
  }),
  make('PartitionQuery with a count of 0 answers INVALID_ARGUMENT', METHODS, async (world) => {
    await refused(partitioned(world, { partitionCount: '0' }), 'INVALID_ARGUMENT', 'the count 0');
  }),
  make('PartitionQuery below a document answers INVALID_ARGUMENT', METHODS, async (world) => {
    await refused(partitioned(world, { parent: world.doc('c/a') }), 'INVALID_ARGUMENT', 'the parent c/a');
  }),
  make(
    'PartitionQuery of a query that is not over all descendants answers INVALID_ARGUMENT',
    METHODS,
    async (world) => {
      const structuredQuery = { from: [{ collectionId: 'c' }] };
      await refused(
        partitioned(world, { structuredQuery }),
        'INVALID_ARGUMENT',
        'a collection without descendants',
      );
    },
  ),
  make('PartitionQuery of a query with a limit answers INVALID_ARGUMENT', METHODS, async (world) => {
    const structuredQuery = { from: [{ collectionId: 'c', allDescendants: true }], limit: { value: 5 } };
    await refused(partitioned(world, { structuredQuery }), 'INVALID_ARGUMENT', 'a limit');
  }),
];
