/** Reads of what was there at a time. */
import assert from 'node:assert/strict';
import { accepted, type FirestoreCase, of, refused } from '../expect.ts';
import { READ_TIME, TOO_OLD } from '../sources.ts';
import type { FirestoreWorld } from '../world.ts';

const parentOf = ({ database }: FirestoreWorld): string => `${database}/documents`;
const time = of('Reads at a time');
/** Two versions, and a time between them. */
async function versions({ db, pass }: FirestoreWorld): Promise<Readonly<{ between: object; later: object }>> {
  const [first, wait] = [await db.doc('c/a').set({ n: 1 }), 20];
  await pass(wait);
  const second = await db.doc('c/a').set({ n: 2 });
  await db.doc('c/b').set({ n: 9 });
  const wire = ({ writeTime }: typeof first): object => ({
    seconds: String(writeTime.seconds),
    nanos: writeTime.nanoseconds,
  });
  return { between: wire(first), later: wire(second) };
}

export const readTimeCases: readonly FirestoreCase[] = [
  time('A document is read as it was at a time within the past hour', READ_TIME, async (world) => {
    const { between } = await versions(world);
    const found = await accepted(
      world.one('GetDocument', { name: world.doc('c/a'), readTime: between }),
      'the read',
    );
    assert.deepEqual((found['fields'] as Record<string, { integerValue: string }>)['n']?.integerValue, '1');
  }),
  time('A query finds what was there at a time within the past hour', READ_TIME, async (world) => {
    const { between } = await versions(world);
    const structuredQuery = { from: [{ collectionId: 'c' }] };
    const request = { parent: parentOf(world), structuredQuery, readTime: between };
    const answers = await accepted(world.call('RunQuery', request), 'the query');
    assert.equal(answers.filter(({ document }) => document).length, 1);
  }),
  time('A read-only transaction at a time reads what was there then', READ_TIME, async (world) => {
    await versions(world);
    const { readTime } = await world.db.doc('c/a').get();
    await world.pass(20);
    await world.db.doc('c/a').set({ n: 3 });
    const seen = await accepted(
      world.db.runTransaction(async (transaction) => (await transaction.get(world.db.doc('c/a'))).get('n'), {
        readOnly: true,
        readTime,
      }),
      'the transaction',
    );
    assert.equal(seen, 2);
  }),
  time('A read at the time of the last commit sees it', READ_TIME, async (world) => {
    const { later } = await versions(world);
    const found = await accepted(
      world.one('GetDocument', { name: world.doc('c/a'), readTime: later }),
      'the read',
    );
    assert.deepEqual((found['fields'] as Record<string, { integerValue: string }>)['n']?.integerValue, '2');
  }),
  time('A read in the future answers INVALID_ARGUMENT', READ_TIME, async (world) => {
    const readTime = { seconds: String(Math.floor(world.now() / 1000) + 3600), nanos: 0 };
    await refused(
      world.one('GetDocument', { name: world.doc('c/a'), readTime }),
      'INVALID_ARGUMENT',
      'the future',
    );
  }),
  time('A read further back than an hour answers FAILED_PRECONDITION', TOO_OLD, async (world) => {
    const readTime = { seconds: String(Math.floor(world.now() / 1000) - 2 * 3600), nanos: 0 };
    await refused(
      world.one('GetDocument', { name: world.doc('c/a'), readTime }),
      'FAILED_PRECONDITION',
      'two hours ago',
    );
  }),
];
