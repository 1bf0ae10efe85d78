import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AggregateField, FieldPath, Filter, Firestore, type Query } from '@google-cloud/firestore';
import { status } from '@grpc/grpc-js';
import { manualClock } from '../manual-clock.ts';
import { startFirestore } from './index.ts';
import type { IndexOptions } from './index-check.ts';
import { type TestBed, testBed } from './testing.ts';

const NAME = FieldPath.documentId();

/** What the service asks for before it runs the query: `a↑ b↓` a composite index, `a↑ alone` an exemption; undefined: nothing. */
async function asked(run: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await run();
    return undefined;
  } catch (error) {
    const { code, details = '' } = error as { code?: number; details?: string };
    assert.equal(code, status.FAILED_PRECONDITION, String(error));
    const json =
      /^The query requires an index\. You can create it here: \S+ or add to firestore\.indexes\.json: (.*)$/.exec(
        details,
      )?.[1];
    assert.ok(json !== undefined, details);
    const { indexes, fieldOverrides } = JSON.parse(json);
    const kind = (field: { order?: string; fieldPath?: string }): string =>
      ({ ASCENDING: '↑', DESCENDING: '↓' })[field.order ?? ''] ?? '∋';
    if (fieldOverrides.length > 0) {
      const added = fieldOverrides[0].indexes.at(-1);
      return `${fieldOverrides[0].fieldPath}${kind(added)} alone ${added.queryScope}`;
    }
    return `${indexes[0].fields.map((field: { fieldPath: string }) => field.fieldPath + kind(field)).join(' ')} ${indexes[0].queryScope}`;
  }
}

async function enforcing(definitions: object, run: (bed: TestBed, c: Query) => Promise<void>): Promise<void> {
  const bed = await testBed(manualClock(), { indexes: { mode: 'enforce', definitions } });
  try {
    await run(bed, bed.db.collection('c'));
  } finally {
    await bed.close();
  }
}

test('single-field indexes, alone and merged, serve what they are documented to serve', () =>
  enforcing({}, async ({ db }, c) => {
    const queries: Query[] = [
      c,
      c.where('a', '==', 1),
      c.where('a', '==', 1).where('b', '==', 2).where('m.x', '==', null),
      c.where('t', 'array-contains', 'x').where('a', '==', 1),
      c.where('a', 'in', [1, 2]).where('b', 'in', [3, 4]),
      c.where('t', 'array-contains-any', ['x', 'y']).where('a', '==', 1),
      c.orderBy('a', 'desc'),
      c.where('a', '>', 1).where('a', '<', 5).orderBy('a', 'desc'),
      c.where('a', '!=', 1),
      c.where('a', 'not-in', [1, 2]),
      c.where('a', '==', 1).orderBy('a', 'desc'),
      c.where('a', 'in', [1, 2]).orderBy('a'),
      c.orderBy('a').orderBy(NAME),
      c.orderBy('a', 'desc').orderBy(NAME, 'desc'),
      c.orderBy(NAME),
      c.where(NAME, '>', 'x').where('a', '==', 1),
      c.where('a', '==', 1).orderBy(NAME, 'desc'),
      c.where(NAME, '==', 'x').orderBy('a').orderBy('b'),
      c.where(Filter.or(Filter.where('a', '==', 1), Filter.where('b', '==', 2))),
      c
        .where(Filter.or(Filter.where('a', '==', 1), Filter.where('a', '>', 5)))
        .orderBy('a')
        .limit(3),
      db.collectionGroup('c'),
      db.collectionGroup('c').orderBy(NAME),
    ];
    for (const [i, query] of queries.entries())
      assert.equal(await asked(() => query.get()), undefined, `query ${i}`);
  }));

test('what they cannot serve asks for an index of the fields that equal, then those that are ordered', () =>
  enforcing({}, async ({ db }, c) => {
    const group = db.collectionGroup('c');
    const queries: [string, Query][] = [
      ['a↑ b↑ COLLECTION', c.where('a', '==', 1).orderBy('b')],
      ['a↑ b↓ COLLECTION', c.where('a', '==', 1).orderBy('b', 'desc')],
      ['a↑ b↑ COLLECTION', c.where('a', '==', 1).where('b', '>', 1)],
      ['a↑ b↑ COLLECTION', c.where('a', '==', 1).where('b', '!=', 1)],
      ['a↑ b↑ c↓ COLLECTION', c.where('b', '==', 1).where('a', '==', 1).orderBy('c', 'desc')],
      ['b↑ a↑ COLLECTION', c.orderBy('b').orderBy('a')],
      ['a↑ b↑ COLLECTION', c.where('b', '>', 1).where('a', '<', 1)],
      ['b↓ a↓ COLLECTION', c.where('b', '>', 1).where('a', '<', 1).orderBy('b', 'desc')],
      ['a↑ b↓ COLLECTION', c.where('a', '>', 1).orderBy('a').orderBy('b', 'desc')],
      ['t∋ b↑ COLLECTION', c.where('t', 'array-contains', 'x').orderBy('b')],
      [
        'a↑ t∋ b↑ COLLECTION',
        c.where('t', 'array-contains-any', ['x']).where('a', '==', 1).where('b', '<', 5),
      ],
      ['a↑ b↑ COLLECTION', c.where('a', 'in', [1, 2]).orderBy('b')],
      ['a↓ __name__↑ COLLECTION', c.orderBy('a', 'desc').orderBy(NAME)],
      ['t∋ __name__↓ COLLECTION', c.where('t', 'array-contains', 'x').orderBy(NAME, 'desc')],
      ['__name__↓ COLLECTION', c.orderBy(NAME, 'desc')],
      // Only the second part of the disjunction lacks one.
      ['b↑ a↑ COLLECTION', c.where(Filter.or(Filter.where('a', '>', 1), Filter.where('b', '==', 2)))],
      ['a↑ alone COLLECTION_GROUP', group.where('a', '==', 1)],
      ['a↓ alone COLLECTION_GROUP', group.orderBy('a', 'desc')],
      ['t∋ alone COLLECTION_GROUP', group.where('t', 'array-contains', 1)],
      ['a↑ b↓ COLLECTION_GROUP', group.where('a', '==', 1).orderBy('b', 'desc')],
    ];
    for (const [want, query] of queries) assert.equal(await asked(() => query.get()), want);
  }));

test('what is summed or averaged has to be in the index with the filters', () =>
  enforcing({}, async (_, c) => {
    const [sum, average] = [AggregateField.sum('n'), AggregateField.average('k')];
    const filtered = c.where('a', '==', 1);
    assert.equal(await asked(() => c.where('a', '==', 1).count().get()), undefined);
    assert.equal(await asked(() => c.aggregate({ sum }).get()), undefined);
    assert.equal(await asked(() => c.where('n', '>', 1).aggregate({ sum }).get()), undefined);
    assert.equal(await asked(() => filtered.aggregate({ sum }).get()), 'a↑ n↑ COLLECTION');
    assert.equal(await asked(() => c.aggregate({ sum, average }).get()), 'n↑ k↑ COLLECTION');
    assert.equal(await asked(() => filtered.where('b', '>', 1).count().get()), 'a↑ b↑ COLLECTION');
  }));

test('indexes that are defined serve, also merged, in any order of what equals', () =>
  enforcing(
    {
      indexes: [
        {
          collectionGroup: 'c',
          queryScope: 'COLLECTION',
          fields: [field('b'), field('a'), field('s', 'DESCENDING')],
        },
        {
          collectionGroup: 'c',
          queryScope: 'COLLECTION',
          fields: [{ fieldPath: 't', arrayConfig: 'CONTAINS' }, field('s', 'DESCENDING')],
        },
        { collectionGroup: 'c', queryScope: 'COLLECTION', fields: [field('a'), field('n', 'DESCENDING')] },
        {
          collectionGroup: 'c',
          queryScope: 'COLLECTION',
          fields: [field('x', 'DESCENDING'), field('__name__')],
        },
        { collectionGroup: 'd', queryScope: 'COLLECTION', fields: [field('a'), field('b')] },
      ],
    },
    async ({ db }, c) => {
      const merged = c
        .where('a', '==', 1)
        .where('b', '==', 2)
        .where('t', 'array-contains', 'x')
        .orderBy('s', 'desc');
      const sum = AggregateField.sum('n');
      const served = [
        merged,
        c.where('b', '==', 2).where('a', '==', 1).where('s', '<', 1).orderBy('s', 'desc'),
      ];
      for (const query of served) assert.equal(await asked(() => query.get()), undefined);
      assert.equal(await asked(() => c.where('a', '==', 1).aggregate({ sum }).get()), undefined);
      assert.equal(await asked(() => c.orderBy('x', 'desc').orderBy(NAME).get()), undefined);
      assert.equal(await asked(() => c.where('a', '==', 1).orderBy('s', 'desc').get()), 'a↑ s↓ COLLECTION');
      assert.equal(await asked(() => c.where('a', '==', 1).orderBy('b').get()), 'a↑ b↑ COLLECTION');
      assert.equal(
        await asked(() => db.collectionGroup('d').where('a', '==', 1).orderBy('b').get()),
        'a↑ b↑ COLLECTION_GROUP',
      );
    },
  ));

test('an override takes the indexes of a field away, or gives them for collection groups', () =>
  enforcing(
    {
      fieldOverrides: [
        { collectionGroup: 'c', fieldPath: 'm', indexes: [] },
        {
          collectionGroup: 'c',
          fieldPath: 'm.x',
          indexes: [{ order: 'ASCENDING', queryScope: 'COLLECTION_GROUP' }],
        },
        { collectionGroup: 'c', fieldPath: 'expiresAt', ttl: true },
        { collectionGroup: 'd', fieldPath: '*', indexes: [] },
      ],
    },
    async ({ db }, c) => {
      assert.equal(await asked(() => c.where('m.y', '==', 1).get()), 'm.y↑ alone COLLECTION');
      assert.equal(await asked(() => db.collectionGroup('c').where('m.x', '>', 1).get()), undefined);
      assert.equal(await asked(() => c.orderBy('expiresAt').get()), undefined);
      assert.equal(await asked(() => db.collection('d').orderBy('z').get()), 'z↑ alone COLLECTION');
    },
  ));

test('listeners and lists of documents are refused alike', () =>
  enforcing({}, async (bed, c) => {
    const listened = new Promise<unknown>((_, reject) => {
      c.where('a', '==', 1)
        .orderBy('b')
        .onSnapshot(() => undefined, reject);
    });
    await assert.rejects(listened, /requires an index/);
    const parent = 'projects/test-project/databases/(default)/documents';
    const listed = bed.call('ListDocuments', { parent, collectionId: 'c', orderBy: 'a, b desc' });
    assert.equal(await asked(() => listed), 'a↑ b↓ COLLECTION');
  }));

test('by default a query without its index runs, and is logged once', async () => {
  const lines: string[] = [];
  const server = await startFirestore({ clock: manualClock(), log: (line) => lines.push(line) });
  process.env['FIRESTORE_EMULATOR_HOST'] = server.address;
  const db = new Firestore({ projectId: 'p' });
  try {
    for (let i = 0; i < 3; i++) await db.collection('c').where('a', '==', i).orderBy('b').get();
    await db.collection('c').where('a', '==', 1).get();
    assert.deepEqual(lines, [
      'firestore: a query needs an index that is not defined; add to firestore.indexes.json: {"indexes":[{"collectionGroup":"c","queryScope":"COLLECTION","fields":[{"fieldPath":"a","order":"ASCENDING"},{"fieldPath":"b","order":"ASCENDING"}]}],"fieldOverrides":[]}',
    ]);
  } finally {
    await db.terminate();
    await server.close();
  }
});

test('options that do not fit are refused with their place', async () => {
  const index = { collectionGroup: 'c', queryScope: 'COLLECTION', fields: [field('a'), field('b')] };
  const refused: [unknown, string][] = [
    [{ mode: 'error' }, 'indexes.mode is "error"; accepted: warn, enforce, off'],
    [{ definitions: [] }, 'indexes.definitions is not an object'],
    [
      { definitions: { index: [] } },
      'indexes.definitions.index is not known; accepted: indexes, fieldOverrides',
    ],
    [{ definitions: { indexes: {} } }, 'indexes.definitions.indexes is not a list'],
    [
      {
        definitions: {
          indexes: [{ ...index, fields: Array.from({ length: 101 }, (_, i) => field(`f${i}`)) }],
        },
      },
      'indexes.definitions.indexes[0].fields has 101 fields; accepted: at most 100',
    ],
    [
      { definitions: { indexes: [index, { ...index, queryScope: 'ALL' }] } },
      'indexes.definitions.indexes[1].queryScope is "ALL"; accepted: COLLECTION, COLLECTION_GROUP',
    ],
    [
      { definitions: { indexes: [{ ...index, fields: [field('a', 'UP')] }] } },
      'indexes.definitions.indexes[0].fields[0].order is "UP"; accepted: ASCENDING, DESCENDING',
    ],
    [
      { definitions: { indexes: [{ ...index, fields: [{ fieldPath: 'a' }] }] } },
      'indexes.definitions.indexes[0].fields[0] must have one of order, arrayConfig, vectorConfig',
    ],
    [
      { definitions: { indexes: [{ ...index, fields: [field('__name__'), field('a')] }] } },
      'indexes.definitions.indexes[0].fields[0] is __name__, which may only be ordered, and last',
    ],
    [
      {
        definitions: {
          indexes: [
            { ...index, fields: ['a', 'b'].map((fieldPath) => ({ fieldPath, arrayConfig: 'CONTAINS' })) },
          ],
        },
      },
      'indexes.definitions.indexes[0].fields has two fields with arrayConfig; accepted: at most one',
    ],
    [
      { definitions: { indexes: [{ ...index, fields: [field('a..b')] }] } },
      'indexes.definitions.indexes[0].fields[0].fieldPath is "a..b", which is not a field path',
    ],
    [
      {
        definitions: {
          fieldOverrides: [{ collectionGroup: 'c', fieldPath: 'a', indexes: [{ arrayConfig: 'ALL' }] }],
        },
      },
      'indexes.definitions.fieldOverrides[0].indexes[0].arrayConfig is "ALL"; accepted: CONTAINS',
    ],
    [
      {
        definitions: {
          fieldOverrides: [1, 2].map(() => ({ collectionGroup: 'c', fieldPath: 'a', indexes: [] })),
        },
      },
      'indexes.definitions.fieldOverrides[1] is the second one of its field',
    ],
  ];
  for (const [indexes, message] of refused) {
    const starting = startFirestore({ clock: manualClock(), indexes: indexes as IndexOptions });
    await assert.rejects(starting, { message });
  }
});

function field(fieldPath: string, order = 'ASCENDING'): object {
  return { fieldPath, order };
}
