/** Databases beside each other, methods that are not served, and names that are none. */
import assert from 'node:assert/strict';
import { accepted, type FirestoreCase, of, refused, refusedHere } from '../expect.ts';
import { METHODS, PIPELINES, QUOTAS } from '../sources.ts';
import type { FirestoreWorld } from '../world.ts';

const database = of('Databases and methods');
const root = ({ database: name }: FirestoreWorld): string => `${name}/documents`;

const pipeline = ({ database: name }: FirestoreWorld): object => ({
  database: name,
  structuredPipeline: { pipeline: { stages: [{ name: 'collection', args: [{ referenceValue: '/c' }] }] } },
});

export const databaseCases: readonly FirestoreCase[] = [
  database('Databases of one project are separate', QUOTAS, async ({ db, client }) => {
    const other = client({ databaseId: 'other' });
    await db.doc('c/a').set({ n: 1 });
    await other.doc('c/a').set({ n: 2 });
    assert.deepEqual([(await db.doc('c/a').get()).get('n'), (await other.doc('c/a').get()).get('n')], [1, 2]);
    await other.doc('c/b').set({});
    assert.equal((await db.collection('c').get()).size, 1);
  }),
  database('A transaction locks in its own database only', QUOTAS, async ({ db, client }) => {
    const other = client({ databaseId: 'other' });
    await db.runTransaction(async (transaction) => {
      await transaction.get(db.doc('c/a'));
      await accepted(other.doc('c/a').set({ n: 1 }), 'a write in the other database');
      transaction.set(db.doc('c/a'), { n: 2 });
    });
    assert.equal((await other.doc('c/a').get()).get('n'), 1);
  }),
  database('Projects are separate', QUOTAS, async ({ db, client, project }) => {
    const other = client({ projectId: `${project}-other` });
    await db.doc('c/a').set({ n: 1 });
    assert.equal((await other.doc('c/a').get()).exists, false);
  }),
  refusedHere(
    'Write, the stream of the web and mobile clients: this server refuses it',
    METHODS,
    'Write',
    ({ call, database: name }) => call('Write', { database: name }),
    async ({ one, database: name }) => {
      const { streamId, streamToken } = await accepted(one('Write', { database: name }), 'Write');
      assert.ok(
        streamId !== '' && (streamToken as Uint8Array).length > 0,
        'the stream has no id or no token',
      );
    },
  ),
  {
    ...refusedHere(
      'ExecutePipeline, of the Enterprise edition: this server refuses it',
      PIPELINES,
      'ExecutePipeline',
      (world) => world.call('ExecutePipeline', pipeline(world)),
      async (world) => {
        await accepted(world.call('ExecutePipeline', pipeline(world)), 'ExecutePipeline');
      },
    ),
    embeddedOnly: 'needs a database of the Enterprise edition',
  },
  database(
    'RunQuery below a name that is no document answers INVALID_ARGUMENT',
    METHODS,
    async ({ call, doc }) => {
      const structuredQuery = { from: [{ collectionId: 'c' }] };
      await refused(
        call('RunQuery', { parent: doc('c'), structuredQuery }),
        'INVALID_ARGUMENT',
        'the parent c',
      );
    },
  ),
  database('RunQuery without a query answers INVALID_ARGUMENT', METHODS, async (world) => {
    await refused(world.call('RunQuery', { parent: root(world) }), 'INVALID_ARGUMENT', 'no query');
  }),
  database('Commit to a name that is no database answers INVALID_ARGUMENT', METHODS, async ({ one }) => {
    await refused(
      one('Commit', { database: 'nonsense', writes: [] }),
      'INVALID_ARGUMENT',
      'the database nonsense',
    );
  }),
];
