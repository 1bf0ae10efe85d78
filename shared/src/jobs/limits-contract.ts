/**
 * The rows of the contract about limits: over all workers at once, and no job waits for a key that is not its own.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type JobKit, type JobsUnderTest, LEASE_MS } from './contract-kit.ts';
import type { ClaimedJob, NewJob } from './job.ts';
import type { ClaimLimits, ClaimQuery } from './job-store.ts';

export function limitsContract<Tx>(opened: () => JobsUnderTest<Tx>, kit: JobKit): void {
  const { roleOf, enqueue, one, claim, settle, expire } = kit;
  const within = (role: string, limits: ClaimLimits, change: Partial<ClaimQuery> = {}) =>
    claim(role, { roles: [{ role, leaseMs: LEASE_MS, limits }], ...change }, opened().another());
  /** Of several processes at once. */
  const atOnce = async (role: string, limits: ClaimLimits, processes = 5): Promise<ClaimedJob[]> =>
    (await Promise.all(Array.from({ length: processes }, () => within(role, limits)))).flat();
  const jobs = (role: string, count: number, change: Partial<NewJob> = {}): readonly NewJob[] =>
    Array.from({ length: count }, (_, n) => ({ role, kind: 'k', payload: n, ...change }));
  const ofKey = (role: string, limitKey: string, count: number): readonly NewJob[] =>
    jobs(role, count, { limitKey, payload: limitKey });
  const keysOf = (runs: readonly ClaimedJob[]): readonly unknown[] =>
    runs
      .map(({ payload }) => (typeof payload === 'string' ? payload : ''))
      .toSorted((one, other) => one.localeCompare(other));
  const end = async (runs: readonly ClaimedJob[]): Promise<void> => {
    for (const run of runs) await settle(run, { kind: 'done' });
  };

  test('T35: over all processes no more jobs of a role run than its limit says', async () => {
    const role = roleOf();
    const limits = { running: 3 };
    await enqueue(...jobs(role, 9));
    const runs = await atOnce(role, limits);
    assert.equal(runs.length, 3);
    assert.deepEqual(await within(role, limits), []);
    await end(runs.slice(0, 2));
    assert.equal((await atOnce(role, limits)).length, 2);
    // A run whose process died counts until its lease is judged, and then makes room.
    await opened().age(LEASE_MS + 1_000);
    assert.deepEqual(await within(role, limits), []);
    await expire();
    const others = await within(role, limits);
    const crashes = others.map((run) => run.crashes).toSorted((one, other) => one - other);
    assert.deepEqual(crashes, [0, 0, 1]);
  });

  test('T35: over all processes no more jobs of a key run than its limit says, and keyless ones are not counted', async () => {
    const role = roleOf();
    const limits = { runningPerKey: 2 };
    await enqueue(...ofKey(role, 'a', 5), ...ofKey(role, 'b', 1), ...jobs(role, 3, { payload: 'none' }));
    const runs = await atOnce(role, limits);
    runs.push(...(await within(role, limits)));
    assert.deepEqual(keysOf(runs), ['a', 'a', 'b', 'none', 'none', 'none']);
    assert.deepEqual(await within(role, limits), []);
    await end(runs.filter(({ payload }) => payload === 'a').slice(0, 1));
    assert.deepEqual(keysOf(await atOnce(role, limits)), ['a']);
  });

  test('T35: no job waits behind those of a key that has no room', async () => {
    const role = roleOf();
    const limits = { running: 4, runningPerKey: 1 };
    await enqueue(...ofKey(role, 'crowd', 300));
    assert.deepEqual(keysOf(await within(role, limits)), ['crowd']);
    await enqueue(...ofKey(role, 'late', 2), ...ofKey(role, 'later', 2), ...ofKey(role, 'last', 2));
    assert.deepEqual(keysOf(await within(role, limits, { limit: 2 })), ['late', 'later']);
    assert.deepEqual(keysOf(await within(role, limits)), ['last'], 'the fourth of the role');
    assert.deepEqual(await within(role, limits), []);
  });

  test('T35: a suspect counts, and waits where its key has no room', async () => {
    const role = roleOf();
    const limits = { runningPerKey: 1 };
    const keyed = { role, kind: 'k', limitKey: 'a' };
    await one({ ...keyed, payload: 'suspect' });
    assert.equal((await within(role, limits)).length, 1);
    await expire();
    await one({ ...keyed, payload: 'innocent' });
    const runs = await within(role, limits);
    assert.deepEqual(keysOf(runs), ['suspect']);
    await end(runs);
    const next = await within(role, limits, { suspect: false });
    assert.deepEqual(keysOf(next), ['innocent']);
    await expire();
    await one({ ...keyed, payload: 'other' });
    assert.deepEqual(keysOf(await within(role, limits, { suspect: false })), ['other']);
    assert.deepEqual(await within(role, limits), []);
  });

  test('T35: among keys with room priority goes first, and time after it', async () => {
    const role = roleOf();
    const limits = { runningPerKey: 1 };
    await enqueue(...ofKey(role, 'a', 1), ...ofKey(role, 'b', 1));
    await enqueue(...ofKey(role, 'c', 1).map((job) => ({ ...job, priority: 8 as const })));
    const order: unknown[] = [];
    for (let turn = 0; turn < 3; turn += 1) {
      for (const { payload } of await within(role, limits, { limit: 1 })) order.push(payload);
    }
    assert.deepEqual(order, ['c', 'a', 'b']);
  });

  test('T36: over all processes no more jobs of a role start in a period than its limit says', async () => {
    const role = roleOf();
    const limits = { starts: { most: 3, perMs: 60_000 } };
    await enqueue(...jobs(role, 9));
    const runs = await atOnce(role, limits);
    assert.equal(runs.length, 3);
    await end(runs);
    await opened().age(50_000);
    assert.deepEqual(await within(role, limits), [], 'what has ended has started all the same');
    await opened().age(11_000);
    const [again] = await atOnce(role, limits, 1);
    assert.ok(again !== undefined);
    await settle(again, { kind: 'released' });
    assert.deepEqual(await within(role, limits), [], 'what was given back has started, too');
  });

  test('T36: over all processes no more jobs of a key start in a period than its limit says', async () => {
    const role = roleOf();
    const limits = { startsPerKey: { most: 2, perMs: 60_000 } };
    await enqueue(...ofKey(role, 'a', 5), ...ofKey(role, 'b', 5));
    const runs = [...(await atOnce(role, limits)), ...(await within(role, limits))];
    assert.deepEqual(keysOf(runs), ['a', 'a', 'b', 'b']);
    await end(runs);
    assert.deepEqual(await within(role, limits), []);
    await opened().age(61_000);
    assert.deepEqual(keysOf(await within(role, limits)), ['a', 'a', 'b', 'b']);
  });

  test('T35: a role without limits is claimed as ever beside one that has them', async () => {
    const [limited, free] = [roleOf(), roleOf()];
    await enqueue(...jobs(limited, 5), ...jobs(free, 5, { limitKey: 'x' }));
    const roles = [
      { role: limited, leaseMs: LEASE_MS, limits: { running: 1 } },
      { role: free, leaseMs: LEASE_MS },
    ];
    const runs = await claim(limited, { roles });
    const count = (role: string): number => runs.filter((run) => run.role === role).length;
    assert.deepEqual([count(limited), count(free)], [1, 5]);
  });

  test('a limit key is kept by a dead job that is relaunched', async () => {
    const role = roleOf();
    await one({ role, kind: 'k', payload: 1, limitKey: 'a', maxAttempts: 1 });
    const [run] = await within(role, { runningPerKey: 1 });
    await settle(run!, { kind: 'dead', error: { code: 'C', text: 't' } });
    await opened().store.relaunch([run!.id]);
    await enqueue(...ofKey(role, 'a', 1));
    assert.equal((await atOnce(role, { runningPerKey: 1 })).length, 1);
    await assert.rejects(one({ role, kind: 'k', payload: 1, limitKey: 'x'.repeat(201) }), {
      code: 'LIMIT_EXCEEDED',
    });
  });
}
