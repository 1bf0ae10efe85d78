/**
 * The rows of the contract about what operators and schedulers ask: dead jobs, priorities, counts, deletions, wake-ups.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { ERROR, type JobKit, type JobsUnderTest } from './contract-kit.ts';

export function operationsContract<Tx>(opened: () => JobsUnderTest<Tx>, kit: JobKit): void {
  const { roleOf, enqueue, one, idOf, claim, settle, fail, running } = kit;

  test('T26: a dead job that is relaunched twice at once is one job, as new but for its token and key', async () => {
    const job = { role: roleOf(), kind: 'k', payload: 1, key: randomUUID(), maxAttempts: 1 };
    await one(job);
    const [run] = await claim(job.role);
    await settle(run!, fail(0));
    const answers = await Promise.all([
      opened().store.relaunch([run!.id]),
      opened().store.relaunch([run!.id, '999999999']),
    ]);
    assert.equal(answers[0]! + answers[1]!, 1);
    assert.equal((await one(job)).kind, 'repeated');
    const [again, ...others] = await claim(job.role);
    assert.deepEqual([again?.id, again?.attempt, again?.crashes, others], [run?.id, 1, 0, []]);
    assert.ok(BigInt(again!.token) > BigInt(run!.token));
    assert.deepEqual((await opened().store.dead({ role: job.role, limit: 1 })).items, []);
  });

  test('dead jobs are listed newest first, page by page, and what is discarded is gone', async () => {
    const role = roleOf();
    await enqueue(...[1, 2, 3].map((payload) => ({ role, kind: 'k', payload, maxAttempts: 1 })));
    const runs = await claim(role);
    for (const run of runs) await settle(run, { kind: 'dead', error: ERROR });
    const first = await opened().store.dead({ role, limit: 2 });
    assert.ok(first.next !== undefined);
    const second = await opened().store.dead({ role, limit: 2, after: first.next });
    const listed = [...first.items, ...second.items];
    assert.deepEqual([listed.map(({ payload }) => payload), second.next], [[3, 2, 1], undefined]);
    assert.equal(await opened().store.discard([listed[0]!.id, listed[0]!.id, '999999999']), 1);
    assert.equal((await opened().store.dead({ role, limit: 5 })).items.length, 2);
  });

  test('T27: priority goes first, until the other has waited longer by the ageing of the difference', async () => {
    const role = roleOf();
    const low = await one({ role, kind: 'k', payload: 'low', priority: 2 });
    await opened().age(6 * 60_000 - 10_000);
    await enqueue(...[1, 2].map((payload) => ({ role, kind: 'k', payload, priority: 8 as const })));
    assert.deepEqual(
      (await claim(role, { limit: 1 }, opened().another())).map(({ payload }) => payload),
      [1],
    );
    await opened().age(20_000);
    await enqueue({ role, kind: 'k', payload: 3, priority: 8 });
    assert.deepEqual(
      (await claim(role, { limit: 1, ageingMs: Infinity }, opened().another())).map(({ payload }) => payload),
      [2],
    );
    assert.deepEqual(
      (await claim(role, { limit: 1 }, opened().another())).map(({ id }) => id),
      [idOf(low)],
    );
  });

  test('jobs are counted by state, of one role', async () => {
    const role = roleOf();
    const [, , third] = await enqueue(
      ...[1, 2, 3, 4].map((payload) => ({ role, kind: 'k', payload, maxAttempts: 1 })),
      { role, kind: 'k', payload: 5, after: '1h' },
    );
    assert.deepEqual(await opened().store.look(role), {
      ready: 4,
      waiting: 1,
      running: 0,
      dead: 0,
      suspects: 0,
    });
    const runs = await claim(role, { limit: 2 });
    await settle(runs[0]!, fail(0));
    await opened().store.cancel(idOf(third!));
    assert.deepEqual(await opened().store.look(role), {
      ready: 1,
      waiting: 1,
      running: 1,
      dead: 1,
      suspects: 0,
    });
    assert.ok((await opened().store.look()).ready >= 1);
  });

  test('the figures of health are counted from the log and the samples', async () => {
    await opened().store.tidy();
    const vitals = await opened().store.vitals(3_600_000);
    assert.ok(vitals.backlog >= 0 && (vitals.pickUpP95Ms ?? -1) >= 0);
    assert.ok((vitals.meanBacklog ?? -1) >= 0 && vitals.coveredMs >= 60_000);
  });

  test('what has expired is deleted, by any number of processes at once', async () => {
    const run = await running({ key: randomUUID() });
    await settle(run, { kind: 'done' });
    await opened().age(15 * 86_400_000);
    const tidied = await Promise.all([opened().store.tidy(), opened().store.tidy()]);
    assert.ok(tidied.reduce((sum, { logged }) => sum + logged, 0) >= 1);
    assert.ok(tidied.reduce((sum, { keys }) => sum + keys, 0) >= 1);
    assert.equal(await opened().logged(run.id), 0);
  });

  test('a wake-up reaches those that listen, until they stop', async () => {
    const { store } = opened();
    if (store.listen === undefined) return;
    const end = new AbortController();
    const role = roleOf();
    const heard = Promise.withResolvers<void>();
    const listening = store.listen((woken) => {
      if (woken === role) heard.resolve();
    }, end.signal);
    let isHeard = false;
    void heard.promise.then(() => (isHeard = true));
    // The listener may not be there yet: a wake-up is a hint.
    while (!isHeard) {
      await opened().store.wake(role);
      await Promise.race([heard.promise, new Promise((resolve) => setTimeout(resolve, 20))]);
    }
    end.abort();
    await listening;
  });
}
