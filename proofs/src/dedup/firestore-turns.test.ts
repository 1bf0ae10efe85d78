import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Firestore, Timestamp } from '@google-cloud/firestore';
import { createFaults, type FaultRule, startFirestore } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { codeOf } from '../../../shared/src/errors.ts';
import { claimed, request } from '../../../shared/src/dedup/contract.ts';
import { isWriteRefused } from '../../../shared/src/firestore/errors.ts';
import { firestoreClaims } from '../../../shared/src/dedup/firestore.ts';
import { documentTurns } from '../../../shared/src/firestore/turns.ts';

process.env['METADATA_SERVER_DETECTION'] ??= 'none';

type Rule = Pick<FaultRule, 'method' | 'action'>;

/** `calls` counts by method since the last time. */
async function bed(t: TestContext) {
  const faults = createFaults();
  const server = await startFirestore({ clock: systemClock(), faults });
  const [host = '', port] = server.address.split(':');
  const firestore = new Firestore({ projectId: 'demo-project', host, port: Number(port), ssl: false });
  t.after(async () => {
    await firestore.terminate();
    await server.close();
  });
  const plan = (...rules: readonly Rule[]) =>
    faults.set({ rules: rules.map((rule) => ({ service: 'firestore', ...rule })) });
  const counted = ['Commit', 'BatchWrite', 'BatchGetDocuments'];
  const calls = (): Record<string, number> => {
    const found: Record<string, number> = {};
    for (const { method } of faults.log()) found[method] = (found[method] ?? 0) + 1;
    plan(...counted.map((method): Rule => ({ method, action: { type: 'delay', ms: 1 } })));
    return found;
  };
  calls();
  return { firestore, plan, calls, turns: documentTurns(firestore.collection('claims')) };
}

const endings = (settled: readonly PromiseSettledResult<unknown>[]): unknown[] =>
  settled.map((one) =>
    one.status === 'fulfilled' ? 'ok' : isWriteRefused(one.reason) ? 'refused' : one.reason,
  );

test('a write and a read alone go out as they are', async (t) => {
  const { turns, calls } = await bed(t);
  await turns.create('one', { n: 1 });
  assert.deepEqual(calls(), { Commit: 1 });
  assert.equal((await turns.get('one')).get('n'), 1);
  assert.deepEqual(calls(), { BatchGetDocuments: 1 });
});

test('writes of one turn share requests, and each is applied or refused by itself', async (t) => {
  const { turns, calls } = await bed(t);
  const { writeTime } = await turns.create('there', { n: 1 });
  calls();
  const stale = Timestamp.fromMillis(1);
  const settled = await Promise.allSettled([
    turns.create('new', { n: 2 }),
    turns.create('there', { n: 3 }),
    turns.update('absent', { n: 4 }, { lastUpdateTime: writeTime }),
    turns.create('other', { n: 5 }),
  ]);
  assert.deepEqual(endings(settled), ['ok', 'refused', 'refused', 'ok']);
  assert.deepEqual(calls(), { BatchWrite: 1 });
  const updates = await Promise.allSettled([
    turns.update('new', { n: 6 }, { lastUpdateTime: stale }),
    turns.update('there', { n: 7 }, { lastUpdateTime: writeTime }),
  ]);
  assert.deepEqual(endings(updates), ['refused', 'ok']);
  const [changed] = updates.slice(1);
  const read = await Promise.all(['new', 'there', 'absent'].map((id) => turns.get(id)));
  assert.deepEqual(
    read.map((snapshot) => snapshot.get('n') as unknown),
    [2, 7, undefined],
  );
  assert.ok(changed?.status === 'fulfilled' && read[1]?.updateTime?.isEqual(changed.value.writeTime));
  assert.deepEqual(calls(), { BatchWrite: 1, BatchGetDocuments: 1 });
});

test('writes of one turn to one document: the first is applied, the others are refused', async (t) => {
  const { turns } = await bed(t);
  const settled = await Promise.allSettled([1, 2, 3].map((n) => turns.create('same', { n })));
  assert.deepEqual(endings(settled), ['ok', 'refused', 'refused']);
});

test('1,200 writes and reads of one turn, more than the client keeps ready, are all answered', async (t) => {
  const { turns, calls } = await bed(t);
  const ids = Array.from({ length: 1_200 }, (_, index) => `document-${index}`);
  await Promise.all(ids.map((id) => turns.create(id, { id })));
  const written = calls()['BatchWrite'] ?? 0;
  assert.ok(written <= 70, `${written} requests for 1,200 writes`);
  const read = await Promise.all(ids.map((id) => turns.get(id)));
  assert.deepEqual(
    read.map((snapshot) => snapshot.get('id') as unknown),
    ids,
  );
  assert.deepEqual(calls(), { BatchGetDocuments: 12 });
});

test('a shared request that fails leaves the outcome of each claim unknown, and its lost reply is found', async (t) => {
  const { firestore, plan } = await bed(t);
  const store = firestoreClaims(firestore);
  const asked = Array.from({ length: 5 }, () => request());
  plan({ method: 'BatchWrite', action: { type: 'fail', code: 'PERMISSION_DENIED' } });
  for (const one of await Promise.allSettled(asked.map((each) => store.claim(each)))) {
    assert.equal(one.status === 'rejected' && codeOf(one.reason), 'STORE_UNAVAILABLE');
  }
  plan({ method: 'BatchWrite', action: { type: 'lose-reply', code: 'PERMISSION_DENIED' } });
  for (const one of await Promise.allSettled(asked.map((each) => store.claim(each)))) {
    assert.equal(one.status === 'rejected' && codeOf(one.reason), 'STORE_UNAVAILABLE');
  }
  plan();
  const answers = await Promise.all(asked.map((each) => claimed(store, each)));
  assert.ok(
    answers.every(({ adopted }) => adopted),
    'each finds its own claim',
  );
  const rivals = asked.map(({ key }) => store.claim(request({ key })));
  for (const { kind } of await Promise.all(rivals)) assert.equal(kind, 'inProgress');
  const completed = await Promise.all(answers.map(({ held }) => store.complete(held)));
  assert.ok(completed.every((kind) => kind === 'completed'));
});

test('the caller can terminate its client at once after a burst', async (t) => {
  const { firestore, turns } = await bed(t);
  const writes = Promise.allSettled(['a', 'b', 'c'].map((id) => turns.create(id, {})));
  await new Promise((resolve) => setImmediate(resolve));
  await firestore.terminate();
  await writes;
});
