/**
 * The rows of the contract about keys: one job for each, whatever happens at once.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { JobKit, JobsUnderTest } from './contract-kit.ts';

export function keyContract<Tx>(opened: () => JobsUnderTest<Tx>, kit: JobKit): void {
  const { roleOf, enqueue, one, idOf, claim, settle, fail } = kit;

  test('T12: one key at the same time is one job', async () => {
    const job = { role: roleOf(), kind: 'k', payload: { b: 1, a: [2] }, key: randomUUID() };
    const same = { ...job, payload: { a: [2], b: 1 } };
    const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => one(n % 2 === 0 ? job : same)));
    assert.equal(answers.filter(({ kind }) => kind === 'enqueued').length, 1);
    assert.equal(answers.filter(({ kind }) => kind === 'repeated').length, 7);
    assert.equal(new Set(answers.map(idOf)).size, 1);
    assert.equal((await claim(job.role)).length, 1);
  });

  test('T12: batches that write the same keys in opposite orders both succeed', async () => {
    const role = roleOf();
    const batch = Array.from({ length: 50 }, (_, n) => ({
      role,
      kind: 'k',
      payload: n,
      key: `${role} ${n}`,
    }));
    const both = await Promise.all([enqueue(...batch), enqueue(...batch.toReversed())]);
    const fresh = both.flat().filter(({ kind }) => kind === 'enqueued');
    assert.deepEqual([fresh.length, both[0]?.length, both[1]?.length], [50, 50, 50]);
    assert.deepEqual(both[0]?.map(idOf), both[1]?.map(idOf).toReversed());
  });

  test('T12: a key twice in one batch is one job, and so it is in one transaction', async () => {
    const job = { role: roleOf(), kind: 'k', payload: 1, key: randomUUID() };
    const [first, second] = await enqueue(job, job);
    assert.deepEqual([first?.kind, second?.kind], ['enqueued', 'repeated']);
    const fresh = { ...job, key: randomUUID() };
    const answers = await opened().transact(async (tx) => [
      ...(await opened().store.write(tx, [fresh])),
      ...(await opened().store.write(tx, [fresh])),
    ]);
    assert.deepEqual(
      answers.map(({ kind }) => kind),
      ['enqueued', 'repeated'],
    );
    assert.equal((await claim(job.role)).length, 2);
  });

  test('T20: what is submitted again after an unknown outcome is a repeat, in a commit of its own as well', async () => {
    const { store } = opened();
    const job = { role: roleOf(), kind: 'k', payload: 1, key: randomUUID() };
    const [first] = await store.submit([job]);
    assert.ok(first?.kind === 'enqueued');
    assert.deepEqual(await store.submit([job]), [{ kind: 'repeated', id: first.id, state: 'ready' }]);
    assert.deepEqual(await store.submit([]), []);
    await assert.rejects(store.submit([{ ...job, kind: '' }]), { code: 'INVALID_JOB' });
    assert.equal((await claim(job.role)).length, 1);
  });

  test('T13: a key with other content is a conflict that names the first job, which stays as it is', async () => {
    const job = { role: roleOf(), kind: 'k', payload: { scene: 1 }, key: randomUUID() };
    const first = await one(job);
    for (const other of [{ payload: { scene: 2 } }, { kind: 'other' }, { role: roleOf() }]) {
      assert.deepEqual(await one({ ...job, ...other }), { kind: 'conflict', first: idOf(first) });
    }
    const [claimed] = await claim(job.role);
    assert.deepEqual(claimed?.payload, { scene: 1 });
  });

  test('T14: a key answers "repeated" in each state of its job, and is free a week after the end', async () => {
    const job = { role: roleOf(), kind: 'k', payload: 1, key: randomUUID(), maxAttempts: 1 };
    const id = idOf(await one(job));
    const says = async (state: string): Promise<void> =>
      assert.deepEqual(await one(job), { kind: 'repeated', id, state });
    await says('ready');
    const [run] = await claim(job.role);
    await says('running');
    await settle(run!, fail(0));
    await says('dead');
    await opened().store.relaunch([id]);
    await says('ready');
    await settle((await claim(job.role))[0]!, { kind: 'done' });
    await says('done');
    await opened().store.tidy();
    await says('done');
    await opened().age(8 * 86_400_000);
    assert.equal((await one(job)).kind, 'enqueued');
  });

  test('T14: an enqueue beside the completion of the first job is a repeat', async () => {
    for (let round = 0; round < 10; round += 1) {
      const job = { role: roleOf(), kind: 'k', payload: 1, key: randomUUID() };
      await one(job);
      const [run] = await claim(job.role);
      const [again] = await Promise.all([one(job), settle(run!, { kind: 'done' })]);
      assert.equal(again.kind, 'repeated');
      assert.deepEqual(await claim(job.role), []);
    }
  });
}
