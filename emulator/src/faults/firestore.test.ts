import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Client, credentials } from '@grpc/grpc-js';
import { systemClock } from '../clock.ts';
import { firestoreDefinition } from '../firestore/index.ts';
import { testBed } from '../firestore/testing.ts';
import { createFaults } from './index.ts';

const ROOT = 'projects/test-project/databases/(default)';
const DOC = `${ROOT}/documents/orders/one`;

async function faulty(t: TestContext, ...rules: readonly object[]) {
  const faults = createFaults();
  const bed = await testBed(systemClock(), { faults });
  t.after(bed.close);
  faults.set({ rules: rules.map((rule) => ({ service: 'firestore', ...rule })) });
  const set = { writes: [{ update: { name: DOC, fields: { n: { integerValue: '1' } } } }], database: ROOT };
  const injected = () => faults.log().map(({ method, resource, n, action }) => [method, resource, n, action]);
  const exists = async () => (await bed.db.doc('orders/one').get()).exists;
  return { ...bed, faults, set, injected, exists };
}

test('fails a commit by its first document, and nothing is written', async (t) => {
  const { call, set, injected, exists } = await faulty(t, {
    method: 'Commit',
    resource: '*/orders/*',
    nth: 1,
    action: { type: 'fail', code: 'PERMISSION_DENIED' },
  });
  await assert.rejects(call('Commit', set), { code: 7 });
  assert.equal(await exists(), false);
  await call('Commit', set);
  assert.deepEqual(injected(), [['Commit', DOC, 1, 'fail']]);
});

test('a commit that is aborted, and one whose reply is lost, are made again by the real client', async (t) => {
  const { db, exists, faults } = await faulty(
    t,
    { method: 'Commit', nth: 1, action: { type: 'fail', code: 'ABORTED' } },
    { method: 'Commit', nth: 2, action: { type: 'lose-reply', code: 'ABORTED' } },
  );
  let attempts = 0;
  await db.runTransaction(async (transaction) => {
    attempts += 1;
    transaction.set(db.doc('orders/one'), { attempts });
  });
  assert.ok(await exists());
  assert.deepEqual([attempts, faults.fired()], [3, [1, 1]]);
});

for (const [when, written] of [
  ['before', false],
  ['after', true],
] as const) {
  test(`cuts the connection ${when} a commit`, async (t) => {
    const { call, set, exists } = await faulty(t, { method: 'Commit', action: { type: 'cut', when } });
    await assert.rejects(call('Commit', set), { code: 14 });
    assert.equal(await exists(), written);
  });
}

test('delays a read in real time', async (t) => {
  const { exists } = await faulty(t, {
    method: 'BatchGetDocuments',
    resource: DOC,
    action: { type: 'delay', ms: 60 },
  });
  const start = performance.now();
  assert.equal(await exists(), false);
  assert.ok(performance.now() - start >= 55);
});

test('fails a query, loses its answers, and cuts it after some of them', async (t) => {
  const { call, db, faults } = await faulty(
    t,
    { method: 'RunQuery', nth: 1, action: { type: 'fail', code: 'INTERNAL' } },
    { method: 'RunQuery', nth: 2, action: { type: 'lose-reply', code: 'DATA_LOSS' } },
    { method: 'RunQuery', nth: 3, action: { type: 'cut', afterMessages: 2 } },
    { method: 'RunQuery', nth: 4, action: { type: 'cut' } },
  );
  await Promise.all(['a', 'b', 'c', 'd'].map((id) => db.doc(`orders/${id}`).set({ id })));
  const query = () =>
    call('RunQuery', {
      parent: `${ROOT}/documents`,
      structuredQuery: { from: [{ collectionId: 'orders' }] },
    });
  await assert.rejects(query(), { code: 13 });
  await assert.rejects(query(), { code: 15 });
  await assert.rejects(query(), { code: 14 });
  await assert.rejects(query(), { code: 14 });
  assert.equal((await query()).length, 4);
  assert.deepEqual(faults.fired(), [1, 1, 1, 1]);
});

test('nothing of a query whose reply is lost arrives', async (t) => {
  const { server, db } = await faulty(t, {
    method: 'RunQuery',
    action: { type: 'lose-reply', code: 'ABORTED' },
  });
  await db.doc('orders/one').set({ n: 1 });
  const { path, requestSerialize, responseDeserialize } = firestoreDefinition()['RunQuery']!;
  const client = new Client(server.address, credentials.createInsecure());
  t.after(() => client.close());
  const request = {
    parent: `${ROOT}/documents`,
    structuredQuery: { from: [{ collectionId: 'orders' }] },
  };
  const call = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request);
  let answers = 0;
  call.on('data', () => (answers += 1));
  const error = await new Promise<{ code?: number }>((resolve) => call.once('error', resolve));
  assert.deepEqual([error.code, answers], [10, 0]);
});

test('the real client reads a query to its end although the connection broke on the way', async (t) => {
  const { db, faults } = await faulty(t, {
    method: 'RunQuery',
    nth: 1,
    action: { type: 'cut', afterMessages: 2 },
  });
  await Promise.all(['a', 'b', 'c', 'd'].map((id) => db.doc(`orders/${id}`).set({ id })));
  const { docs } = await db.collection('orders').get();
  assert.deepEqual(
    docs.map(({ id }) => id),
    ['a', 'b', 'c', 'd'],
  );
  assert.deepEqual(faults.fired(), [1]);
});

test('cuts a listening stream after some answers; the real client listens again and misses nothing', async (t) => {
  const { db, injected, faults } = await faulty(t, {
    method: 'Listen',
    resource: ROOT,
    nth: 1,
    action: { type: 'cut', afterMessages: 3 },
  });
  const seen: unknown[] = [];
  const arrived = new Promise<void>((resolve, reject) => {
    const stop = db.doc('orders/one').onSnapshot((snapshot) => {
      seen.push(snapshot.get('n'));
      if (snapshot.get('n') !== 2) return;
      stop();
      resolve();
    }, reject);
  });
  await db.doc('orders/one').set({ n: 1 });
  await db.doc('orders/one').set({ n: 2 });
  await arrived;
  assert.equal(seen.at(-1), 2);
  assert.deepEqual(injected(), [['Listen', ROOT, 1, 'cut']]);
  assert.deepEqual(faults.fired(), [1]);
});

test('what is injected is not counted as unimplemented; what is missing is, by name', async (t) => {
  const { call, set, server } = await faulty(t, {
    method: 'Commit',
    action: { type: 'fail', code: 'UNIMPLEMENTED' },
  });
  await assert.rejects(call('Commit', set), { code: 12 });
  await assert.rejects(call('ExecutePipeline', { database: ROOT }), { code: 12 });
  assert.deepEqual(server.unimplemented(), { 'google.firestore.v1.Firestore/ExecutePipeline': 1 });
});
