import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { FieldValue, GeoPoint, Timestamp } from '@google-cloud/firestore';
import { systemClock } from '../clock.ts';
import { manualClock } from '../manual-clock.ts';
import { until } from '../until.ts';
import { testBed } from './testing.ts';

const HOUR = 3_600_000;
/** As through a file. */
const filed = (saved: object): object => JSON.parse(JSON.stringify(saved)) as object;

async function bedOf(
  t: TestContext,
  ...[clock = manualClock(), options]: Partial<Parameters<typeof testBed>>
) {
  const bed = await testBed(clock, options);
  t.after(bed.close);
  return bed;
}

test('a fresh server has the documents of every database, with their times to the microsecond', async (t) => {
  const first = await bedOf(t);
  const named = first.client('other-project', 'second');
  const value = {
    null: null,
    yes: true,
    integer: 7,
    double: 7.5,
    notANumber: Number.NaN,
    infinite: Number.NEGATIVE_INFINITY,
    minusZero: -0,
    time: new Timestamp(-62_135_596_800, 123_456_000),
    text: 'ü\u2028\u0000',
    bytes: Buffer.from([0, 255]),
    reference: first.db.doc('rooms/one'),
    place: new GeoPoint(-0, 179.5),
    list: [1, { deep: ['x'] }],
    map: { empty: {}, none: [] },
    vector: FieldValue.vector([1.5, 2]),
    constructor: 'a name that objects have already',
  };
  // Several commits at one time of the clock: their times differ by microseconds.
  await first.db.doc('rooms/one').set(value);
  await first.db.doc('rooms/one/deep/two').set({ n: 1 });
  await first.db.doc('rooms/one').update({ text: 'changed' });
  await named.doc('rooms/one').set({ of: 'another database' });
  const saved = first.server.save();

  const second = await bedOf(t);
  second.server.load(filed(saved));
  const database = 'projects/test-project/databases/(default)';
  const documents = ['rooms/one', 'rooms/one/deep/two'].map((path) => `${database}/documents/${path}`);
  const [before, after] = await Promise.all(
    [first, second].map(async ({ call }) => {
      const answers = await call('BatchGetDocuments', { database, documents });
      return answers.map(({ found }) => found);
    }),
  );
  assert.deepEqual(after, before);
  assert.ok(before?.every((found) => found !== undefined));
  assert.equal(
    (await second.client('other-project', 'second').doc('rooms/one').get()).get('of'),
    'another database',
  );
  assert.deepEqual(second.server.save(), filed(saved));
});

test('a precondition on an update time of before holds, and new update times are later', async (t) => {
  const clock = manualClock();
  const first = await bedOf(t, clock);
  const { writeTime } = await first.db.doc('rooms/one').set({ n: 1 });
  const last = await first.db.doc('rooms/two').set({ n: 1 });
  await first.db.doc('rooms/two').delete();
  const saved = filed(first.server.save());
  // Its clock is an hour behind.
  const second = await bedOf(t, manualClock(clock.now() - HOUR));
  second.server.load(saved);
  const doc = second.db.doc('rooms/one');
  const result = await doc.update({ n: 2 }, { lastUpdateTime: writeTime });
  assert.ok(result.writeTime.valueOf() > last.writeTime.valueOf());
  await assert.rejects(doc.update({ n: 3 }, { lastUpdateTime: writeTime }), { code: 9 });
  assert.deepEqual((await doc.get()).createTime, writeTime);
});

test('loaded documents expire by their policies: at their time, and at the next sweep where that has passed', async (t) => {
  const ttl = [{ collectionGroup: 'sessions', field: 'until' }];
  const clock = manualClock();
  const first = await bedOf(t, clock, { ttl });
  await first.db.doc('sessions/soon').set({ until: new Date(clock.now() + 90 * 60_000) });
  await first.db.doc('sessions/passed').set({ until: new Date(clock.now() + 60_000) });
  await first.db.doc('sessions/never').set({});
  const saved = filed(first.server.save());
  const later = manualClock(clock.now() + 30 * 60_000);
  const second = await bedOf(t, later, { ttl });
  second.server.load(saved);
  later.advance(HOUR / 2);
  await until(() => second.server.stats().documents === 2, 'one is deleted');
  later.advance(HOUR);
  await until(() => second.server.stats().documents === 1, 'two are deleted');
  assert.equal((await second.db.doc('sessions/never').get()).exists, true);
});

test('an onSnapshot listener recovers and sees the loaded documents', async (t) => {
  const bed = await bedOf(t, systemClock());
  const rooms = bed.db.collection('rooms');
  await rooms.doc('a').set({ n: 1 });
  const saved = filed(bed.server.save());
  await rooms.doc('b').set({ n: 2 });
  const seen: string[] = [];
  const errors: unknown[] = [];
  const stop = rooms.onSnapshot(
    ({ docs }) => seen.push(docs.map(({ id }) => id).join()),
    (error) => errors.push(error),
  );
  await until(() => seen.at(-1) === 'a,b', 'the documents of before');
  bed.server.load(saved);
  await until(() => seen.at(-1) === 'a', 'the loaded documents');
  await rooms.doc('c').set({ n: 3 });
  await until(() => seen.at(-1) === 'a,c', 'what is written afterwards');
  stop();
  assert.deepEqual(errors, []);
});

test('a load rolls transactions back, ends what waits with UNAVAILABLE, and leaves no timer of before', async (t) => {
  const clock = manualClock();
  const bed = await bedOf(t, clock, { ttl: [{ collectionGroup: 'rooms', field: 'until' }] });
  const empty = bed.server.save();
  const database = 'projects/test-project/databases/(default)';
  const name = `${database}/documents/rooms/one`;
  await bed.db.doc('rooms/one').set({ n: 1, until: new Date(clock.now() + HOUR) });
  const [begun] = await bed.call('BeginTransaction', { database });
  const transaction = begun?.['transaction'];
  await bed.call('BatchGetDocuments', { database, documents: [name], transaction });
  const write = { update: { name, fields: { n: { integerValue: '2' } } } };
  const waits = bed.call('Commit', { database, writes: [write] });
  await until(() => bed.server.stats().waitingRequests === 1, 'the commit waits');
  const saved = filed(bed.server.save());
  bed.server.load(empty);
  assert.equal(clock.timers(), 0);
  await assert.rejects(waits, { code: 14 });
  assert.deepEqual([bed.server.stats().documents, bed.server.stats().heldLocks], [0, 0]);
  bed.server.load(saved);
  await assert.rejects(bed.call('Commit', { database, writes: [write], transaction }), {
    code: 3,
    details: /transaction has expired/,
  });
  assert.equal((await bed.db.doc('rooms/one').get()).get('n'), 1, 'nothing of it was written');
});

test('the real client runs its transaction again when a state was loaded in between', async (t) => {
  const bed = await bedOf(t, systemClock());
  const doc = bed.db.doc('rooms/one');
  await doc.set({ n: 10 });
  const saved = filed(bed.server.save());
  await doc.set({ n: 20 });
  let runs = 0;
  await bed.db.runTransaction(async (transaction) => {
    const found = await transaction.get(doc);
    runs += 1;
    if (runs === 1) bed.server.load(saved);
    transaction.update(doc, { n: Number(found.get('n')) + 1 });
  });
  assert.deepEqual([runs, (await doc.get()).get('n')], [2, 11]);
});

test('a read at a time before the load is refused: it would show what was not there', async (t) => {
  const clock = manualClock();
  const bed = await bedOf(t, clock);
  await bed.db.doc('rooms/one').set({ n: 1 });
  const readTime = { seconds: clock.now() / 1000, nanos: 500_000_000 };
  clock.advance(1_000);
  const read = () =>
    bed.call('GetDocument', {
      name: 'projects/test-project/databases/(default)/documents/rooms/one',
      readTime,
    });
  assert.equal((await read()).length, 1);
  bed.server.load(bed.server.save());
  await assert.rejects(read(), { code: 12, details: /keeps no history/ });
});
