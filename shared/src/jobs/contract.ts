/**
 * What every store of jobs must do, as one suite over a factory. The rules stand in docs/protocols.md.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { ERROR, jobKit, type JobsUnderTest, LEASE_MS, NOTHING } from './contract-kit.ts';
import type { NewJob } from './job.ts';
import type { Ending, JobStore } from './job-store.ts';
import { keyContract } from './key-contract.ts';
import { limitsContract } from './limits-contract.ts';
import { operationsContract } from './operations-contract.ts';
import { recurringContract } from './recurring-contract.ts';

export type { JobsUnderTest } from './contract-kit.ts';

export function jobsContract<Tx>(name: string, start: () => Promise<JobsUnderTest<Tx>>): void {
  describe(`the job contract, ${name}`, () => {
    let subject: JobsUnderTest<Tx>;
    let store: JobStore<Tx>;
    before(async () => {
      subject = await start();
      ({ store } = subject);
    });
    after(() => subject.close());
    const kit = jobKit(() => subject);
    const { roleOf, enqueue, one, idOf, query, claim, settle, fail, rescueAll, running, expire } = kit;
    keyContract(() => subject, kit);
    operationsContract(() => subject, kit);
    recurringContract(() => subject, kit);
    limitsContract(() => subject, kit);

    test('a job is claimed as it was enqueued, with its first attempt and a token', async () => {
      const role = roleOf();
      const payload = { text: 'Łódź "🚀" \\u0000', list: [1, null, true], none: {} };
      const answer = await one({ role, kind: 'scene', payload, priority: 8, maxAttempts: 7 });
      const [job] = await claim(role);
      assert.ok(job !== undefined);
      assert.deepEqual(
        [job.id, job.role, job.kind, job.payload, job.priority, job.attempt, job.maxAttempts, job.crashes],
        [idOf(answer), role, 'scene', payload, 8, 1, 7, 0],
      );
      assert.match(job.token, /^[1-9]\d*$/);
      assert.ok(job.createdMs > 0 && job.readyMs >= job.createdMs && job.claimedMs >= job.readyMs);
      assert.deepEqual(await claim(role), [], 'it is claimed once');
    });

    test('a transaction that fails leaves no job and no key', async () => {
      const role = roleOf();
      const job = { role, kind: 'k', payload: 1, key: randomUUID() };
      const failure = new Error('no');
      await assert.rejects(
        subject.transact(async (tx) => {
          await store.write(tx, [job]);
          throw failure;
        }),
        failure,
      );
      assert.deepEqual(await claim(role), []);
      assert.equal((await one(job)).kind, 'enqueued');
    });

    test('what is no job is refused before anything is written', async () => {
      const role = roleOf();
      const good = { role, kind: 'k', payload: 1 };
      const large = { ...good, payload: 'x'.repeat(8_192) };
      await assert.rejects(enqueue(good, large), { code: 'LIMIT_EXCEEDED' });
      for (const bad of [
        { role: 'ä' },
        { kind: '' },
        { payload: undefined },
        { priority: 10 },
        { key: '\0' },
      ]) {
        await assert.rejects(enqueue(good, { ...good, ...bad } as NewJob), { code: 'INVALID_JOB' });
      }
      for (const text of ['\0', '\ud800']) {
        await assert.rejects(enqueue(good, { ...good, payload: [text] }), { code: 'INVALID_JOB' });
      }
      assert.deepEqual(await claim(role), []);
    });

    test('T1: of claims at the same time each row goes to one, and none waits', async () => {
      const role = roleOf();
      await enqueue(...Array.from({ length: 5 }, (_, n) => ({ role, kind: 'k', payload: n })));
      const claims = Array.from({ length: 10 }, async (_, n) => {
        const process = subject.another();
        return (await process.exchange(`w${n}`, 1, { ...NOTHING, claim: query(role, { limit: 1 }) })).claimed;
      });
      const ids = (await Promise.all(claims)).flat().map(({ id }) => id);
      for (const { id } of await claim(role)) ids.push(id);
      assert.deepEqual([ids.length, new Set(ids).size], [5, 5]);
    });

    test('T2: what a call has claimed is found by its owner and number, until the lease is over', async () => {
      const role = roleOf();
      await enqueue({ role, kind: 'k', payload: 1 }, { role, kind: 'k', payload: 2 });
      const owner = randomUUID();
      const { claimed } = await store.exchange(owner, 7, { ...NOTHING, claim: query(role, { limit: 1 }) });
      await store.exchange(owner, 8, { ...NOTHING, claim: query(role, { limit: 1 }) });
      assert.deepEqual(await store.adopt(owner, 7), claimed);
      assert.deepEqual(await store.adopt(randomUUID(), 7), []);
      await expire();
      assert.deepEqual(await store.adopt(owner, 7), []);
    });

    test('T6: a retry is due by the store alone: not before its delay, and then at once', async () => {
      const { id, token, role } = await running();
      assert.deepEqual(await settle({ id, token }, fail(20_000)), { kind: 'settled', state: 'waiting' });
      await rescueAll();
      assert.deepEqual(await claim(role), []);
      await subject.age(15_000);
      await rescueAll();
      assert.deepEqual(await claim(role), []);
      await subject.age(6_000);
      await rescueAll();
      const [again] = await claim(role);
      assert.deepEqual([again?.id, again?.attempt, again?.crashes], [id, 2, 0]);
    });

    test('a job with a later time waits for it, and one with a time that has passed does not', async () => {
      const role = roleOf();
      const later = await one({ role, kind: 'k', payload: 1, after: '20s' });
      const past = await one({ role, kind: 'k', payload: 2, at: new Date(0) });
      await rescueAll();
      assert.deepEqual(
        (await claim(role)).map(({ id }) => id),
        [idOf(past)],
      );
      await subject.age(21_000);
      await rescueAll();
      assert.deepEqual(
        (await claim(role)).map(({ id }) => id),
        [idOf(later)],
      );
    });

    test('T7: a run whose job was taken over changes nothing by any of its writes', async () => {
      const { id, token, role } = await running();
      await expire();
      const [other] = await claim(role);
      assert.ok(other !== undefined && other.id === id && BigInt(other.token) > BigInt(token));
      const held = { id, token };
      const endings: readonly Ending[] = [
        { kind: 'done' },
        fail(0),
        { kind: 'dead', error: ERROR },
        { kind: 'released' },
        { kind: 'cancelled' },
      ];
      for (const ending of endings) assert.deepEqual(await settle(held, ending), { kind: 'stolen' });
      const { renewed } = await store.exchange('w', 1, { renew: [{ ...held, leaseMs: 1 }], settle: [] });
      assert.deepEqual(renewed, [{ kind: 'lost' }]);
      const begun = await store.begin(held);
      await subject.put(begun.tx, `stolen ${id}`);
      assert.deepEqual(await begun.commit({ publish: [], enqueue: [] }), { kind: 'stolen' });
      assert.equal(await subject.isThere(`stolen ${id}`), false);
      assert.deepEqual(await settle(other, { kind: 'done' }), { kind: 'settled', state: 'done' });
    });

    test('a renewal moves the end of the lease', async () => {
      const { id, token } = await running();
      await subject.age(20_000);
      const { renewed } = await store.exchange('w', 1, {
        renew: [{ id, token, leaseMs: LEASE_MS }],
        settle: [],
      });
      assert.deepEqual(renewed, [{ kind: 'renewed', cancelAsked: false }]);
      await subject.age(20_000);
      await rescueAll();
      assert.deepEqual(await settle({ id, token }, { kind: 'done' }), { kind: 'settled', state: 'done' });
    });

    test('T8: a job whose runs all end with their process is dead after three, and never runs again', async () => {
      const { id, role } = await running({ maxAttempts: 100 });
      for (const crashes of [1, 2]) {
        await expire();
        const [again] = await claim(role);
        assert.deepEqual([again?.id, again?.attempt, again?.crashes], [id, crashes + 1, crashes]);
      }
      await expire();
      assert.deepEqual(await claim(role), []);
      const { items } = await store.dead({ role, limit: 10 });
      assert.deepEqual(
        items.map((dead) => [dead.id, dead.reason.code, dead.crashes]),
        [[id, 'CRASHED', 3]],
      );
    });

    test('T8: a crash at the last attempt is the end, and so is a failure there', async () => {
      const crashed = await running({ maxAttempts: 1 });
      await expire();
      assert.equal((await store.dead({ role: crashed.role, limit: 1 })).items[0]?.reason.code, 'CRASHED');
      const failed = await running({ maxAttempts: 1 });
      assert.deepEqual(await settle(failed, fail(5)), { kind: 'settled', state: 'dead' });
      assert.deepEqual((await store.dead({ role: failed.role, limit: 1 })).items[0]?.reason, ERROR);
    });

    test('a failure that does not count, and a release, give the attempt back', async () => {
      const { id, token, role } = await running({ maxAttempts: 1 });
      assert.deepEqual(await settle({ id, token }, fail(0, false)), { kind: 'settled', state: 'ready' });
      const [second] = await claim(role);
      assert.equal(second?.attempt, 1);
      assert.deepEqual(await settle(second!, { kind: 'released' }), { kind: 'settled', state: 'ready' });
      const [third] = await claim(role);
      assert.deepEqual([third?.attempt, third?.crashes], [1, 0]);
      assert.ok(BigInt(third!.token) > BigInt(second!.token));
    });

    test('T10: a claim takes at most one suspect, and none where none is asked for', async () => {
      const role = roleOf();
      await enqueue(...[1, 2, 3].map((payload) => ({ role, kind: 'k', payload })));
      assert.equal((await claim(role)).length, 3);
      await expire();
      await enqueue({ role, kind: 'k', payload: 4 });
      const innocent = await claim(role, { suspect: false });
      assert.deepEqual(
        innocent.map(({ payload }) => payload),
        [4],
      );
      const suspects = await claim(role);
      assert.deepEqual(
        suspects.map(({ crashes }) => crashes),
        [1],
      );
      assert.equal((await claim(role)).length, 1, 'another process takes the next one');
    });

    test('T15: a completion that is sent again is settled already, with one log row and its messages once', async () => {
      const { id, token, role } = await running();
      assert.deepEqual(await settle({ id, token }, { kind: 'done' }), { kind: 'settled', state: 'done' });
      assert.deepEqual(await settle({ id, token }, { kind: 'done' }), { kind: 'already', state: 'done' });
      assert.equal(await subject.logged(id), 1);
      await enqueue({ role, kind: 'k', payload: 1 });
      const [next] = await claim(role);
      const message = { topic: 't', data: Buffer.from(`of ${next?.id}`), attributes: {} };
      for (const kind of ['settled', 'already']) {
        const begun = await store.begin(next!);
        assert.deepEqual(await begun.commit({ publish: [message], enqueue: [] }), { kind, state: 'done' });
      }
      assert.deepEqual(
        (await subject.published()).filter((text) => text === `of ${next?.id}`),
        [`of ${next?.id}`],
      );
      const failed = await running();
      await settle(failed, fail(9_000));
      assert.deepEqual(await settle(failed, fail(9_000)), { kind: 'already', state: 'waiting' });
    });

    test('a completion commits the writes, the messages and the next jobs together, or none of them', async () => {
      const next = roleOf();
      const run = await running();
      const key = randomUUID();
      await enqueue({ role: next, kind: 'first', payload: 1, key });
      const text = `message of ${run.id}`;
      const publish = [{ topic: 't', data: Buffer.from(text), attributes: {} }];
      const refused = await store.begin(run);
      await subject.put(refused.tx, `work of ${run.id}`);
      const conflict = [
        { role: next, kind: 'other', payload: 2 },
        { role: next, kind: 'other', payload: 1, key },
      ];
      const answer = await refused.commit({ publish, enqueue: conflict });
      assert.ok(
        answer.kind === 'refused' && String(Reflect.get(Object(answer.error), 'code')) === 'KEY_CONFLICT',
      );
      const tooLarge = await store.begin(run);
      const large = [{ topic: 't', data: Buffer.alloc(10_000_001), attributes: {} }];
      assert.equal((await tooLarge.commit({ publish: large, enqueue: [] })).kind, 'refused');
      const dropped = await store.begin(run);
      await subject.put(dropped.tx, `work of ${run.id}`);
      await dropped.rollback();
      assert.deepEqual([await subject.isThere(`work of ${run.id}`), (await claim(next)).length], [false, 1]);
      assert.ok(!(await subject.published()).includes(text));
      const begun = await store.begin(run);
      await subject.put(begun.tx, `work of ${run.id}`);
      const enqueued = [{ role: next, kind: 'k', payload: 2 }];
      assert.deepEqual(await begun.commit({ publish, enqueue: enqueued }), {
        kind: 'settled',
        state: 'done',
      });
      await begun.rollback();
      assert.deepEqual([await subject.isThere(`work of ${run.id}`), (await claim(next)).length], [true, 1]);
      assert.ok((await subject.published()).includes(text));
    });

    test('T16: a release after a completion has no effect', async () => {
      const run = await running();
      await settle(run, { kind: 'done' });
      assert.deepEqual(await settle(run, { kind: 'released' }), { kind: 'already', state: 'done' });
      assert.deepEqual(await claim(run.role), []);
    });

    test('T17: a cancellation ends what has not begun, asks what runs, and comes too late after the end', async () => {
      const role = roleOf();
      const ready = idOf(await one({ role, kind: 'k', payload: 1 }));
      const waiting = idOf(await one({ role, kind: 'k', payload: 1, after: '1h' }));
      assert.deepEqual([await store.cancel(ready), await store.cancel(waiting)], ['cancelled', 'cancelled']);
      assert.deepEqual([await store.cancel(ready), await store.cancel('999999999')], ['tooLate', 'tooLate']);
      await subject.age(3_600_001);
      await rescueAll();
      assert.deepEqual(await claim(role), []);
      const run = await running();
      assert.equal(await store.cancel(run.id), 'requested');
      const renewal = { id: run.id, token: run.token, leaseMs: LEASE_MS };
      const { renewed } = await store.exchange('w', 1, { renew: [renewal], settle: [] });
      assert.deepEqual(renewed, [{ kind: 'renewed', cancelAsked: true }]);
      assert.deepEqual(await settle(run, { kind: 'cancelled' }), { kind: 'settled', state: 'cancelled' });
      const orphan = await running();
      await store.cancel(orphan.id);
      await expire();
      assert.deepEqual(
        [await claim(orphan.role), (await store.dead({ role: orphan.role, limit: 1 })).items],
        [[], []],
      );
      assert.equal(await store.cancel(orphan.id), 'tooLate');
    });

    test('T17: of a cancellation and a claim at once, one sees the other', async () => {
      for (let round = 0; round < 20; round += 1) {
        const role = roleOf();
        const id = idOf(await one({ role, kind: 'k', payload: 1 }));
        const [answer, claimed] = await Promise.all([store.cancel(id), claim(role)]);
        assert.equal(claimed.length, answer === 'cancelled' ? 0 : 1);
        assert.notEqual(answer, 'tooLate');
      }
    });
  });
}
