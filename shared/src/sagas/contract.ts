/**
 * What every store of sagas must do, as one suite over a factory: an instance is part of its event's transaction, what was
 * written is read back as it was, and times are the store's.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { InboxStore } from '../dedup/inbox-store.ts';
import { asCommitted, type Instance, type SagaRef } from './instance.ts';
import type { SagaQuery, SagaStore } from './saga-store.ts';
import { anEnded, anInstance, inTransaction } from '../testing/saga-samples.ts';

export type SagasUnderTest<Tx> = Readonly<{
  store: SagaStore<Tx>;
  inbox: InboxStore<Tx>;
  /** Writes a record that is not the library's. */
  plantUnrecognised?(ref: SagaRef): Promise<void>;
  close(): Promise<void>;
}>;

export function sagaStoreContract<Tx>(name: string, start: () => Promise<SagasUnderTest<Tx>>): void {
  describe(`the contract of a store of sagas, ${name}`, () => {
    let subject: SagasUnderTest<Tx>;
    let store: SagaStore<Tx>;
    before(async () => {
      subject = await start();
      store = subject.store;
    });
    after(() => subject.close());

    const plant = (instance: Instance): Promise<void> =>
      inTransaction(subject.inbox, async (transaction) => {
        await store.readIn(transaction, instance.ref);
        store.writeIn(transaction, instance);
      });
    const refOf = (consumer: string): SagaRef => ({ consumer, saga: 'place-order', id: randomUUID() });

    test('an instance is read back as it was written, in every state', async () => {
      const instances: Instance[] = [
        anInstance(),
        anInstance({ reason: 'DEADLINE', state: 'compensating', deadlineAtMs: 1_893_456_100_001 }),
        anInstance({ failure: { text: 'a bug', times: 3 }, late: true }),
        anInstance({ steps: { charge: { status: 'withdrawing', attempt: 12, problem: 'UNANSWERED' } } }),
        anInstance({ steps: {}, history: [], data: 'null' }),
        anEnded('completed'),
        anEnded('compensated', { reason: 'a: refused LIMIT' }),
        anInstance({ ref: { consumer: 'sagas', saga: 'place-order', id: `Łódź 🚀/..${randomUUID()}` } }),
        anInstance({ data: JSON.stringify('x'.repeat(400_000)) }),
      ];
      for (const instance of instances) {
        await plant(instance);
        const found = await store.read(instance.ref);
        assert.deepEqual(found.instance, instance);
        assert.ok(found.nowMs > 0);
      }
    });

    test('an instance that is not there is absent, for each consumer by itself', async () => {
      const instance = anInstance();
      await plant(instance);
      const other = { ...instance.ref, consumer: randomUUID() };
      assert.equal((await store.read(other)).instance, undefined);
      const found = await inTransaction(subject.inbox, (tx) => store.readIn(tx, refOf('sagas')));
      assert.equal(found.instance, undefined);
    });

    test('what was sent by the commit has the time of the commit, which is not before the read', async () => {
      const asked = { status: 'doing', attempt: 1, body: '{}', sentAtMs: 'commit', waitMs: 5 } as const;
      const instance = anInstance({ steps: { 'a.b': asked } });
      const before = await inTransaction(subject.inbox, async (transaction) => {
        const { nowMs } = await store.readIn(transaction, instance.ref);
        store.writeIn(transaction, instance);
        return nowMs;
      });
      const { instance: found, nowMs } = await store.read(instance.ref);
      const sentAtMs = found?.steps['a.b']?.sentAtMs;
      assert.ok(typeof sentAtMs === 'number' && sentAtMs >= before && sentAtMs <= nowMs, `${sentAtMs}`);
      assert.deepEqual(found, asCommitted(instance, sentAtMs));
    });

    test('what is replaced leaves nothing of itself behind', async () => {
      const instance = anInstance({ reason: 'DEADLINE', failure: { text: 'a bug', times: 1 }, late: true });
      await plant(instance);
      const after = anEnded('completed', { ref: instance.ref, steps: {} });
      await plant(after);
      assert.deepEqual((await store.read(instance.ref)).instance, after);
    });

    test('S17: of two events at once each sees what the other left', async () => {
      const instance = anInstance({ history: [] });
      await plant(instance);
      const add = (event: string): Promise<void> =>
        inTransaction(subject.inbox, async (transaction) => {
          const { instance: found } = await store.readIn(transaction, instance.ref);
          assert.ok(found);
          store.writeIn(transaction, { ...found, history: [...found.history, { atMs: 1, event }] });
        });
      await Promise.all(['one', 'two', 'three'].map(add));
      const { instance: found } = await store.read(instance.ref);
      assert.deepEqual(new Set(found?.history.map(({ event }) => event)), new Set(['one', 'two', 'three']));
    });

    test('a transaction that is rolled back writes nothing', async () => {
      const instance = anInstance();
      const failing = inTransaction(subject.inbox, async (transaction) => {
        store.writeIn(transaction, instance);
        throw new Error('rolled back');
      });
      await assert.rejects(failing, /rolled back/);
      assert.equal((await store.read(instance.ref)).instance, undefined);
    });

    test('what is due is found, of its own consumer alone, each shard longest due first, page by page', async () => {
      const consumer = randomUUID();
      const { nowMs } = await store.read(refOf(consumer));
      const ids: string[] = [];
      for (const wakeAtMs of [nowMs - 3_000, nowMs - 9_000, nowMs - 6_000, nowMs - 7_000]) {
        const instance = anInstance({ ref: refOf(consumer), wakeAtMs });
        ids.push(instance.ref.id);
        await plant(instance);
      }
      await plant(anInstance({ ref: refOf(consumer), wakeAtMs: nowMs + 3_600_000 }));
      await plant(anInstance({ ref: refOf(randomUUID()), wakeAtMs: nowMs - 9_000 }));
      await plant(anEnded('completed', { ref: refOf(consumer) }));
      assert.deepEqual(new Set(await allDue(consumer, 0, 1)), new Set(ids));
      assert.equal((await allDue(consumer, 3_600_000, 10)).length, 0, 'the grace is counted');
    });

    test('what has ended is no longer due', async () => {
      const ref = refOf(randomUUID());
      await plant(anInstance({ ref, wakeAtMs: 1_000 }));
      assert.deepEqual(await allDue(ref.consumer, 0, 10), [ref.id]);
      await plant(anEnded('compensated', { ref }));
      assert.deepEqual(await allDue(ref.consumer, 0, 10), []);
    });

    test('instances are listed by state, saga, version, age and whether they are parked, page by page', async () => {
      const consumer = randomUUID();
      const failure = { text: 'a bug', times: 1 };
      const of = (id: string, saga = 'place-order') => ({ ref: { consumer, saga, id } });
      await plant(anInstance({ ...of('r2'), startedAtMs: 3_000, version: 1 }));
      await plant(anInstance({ ...of('r1'), startedAtMs: 1_000 }));
      await plant(anInstance({ ...of('rp'), startedAtMs: 2_000, failure }));
      await plant(anInstance({ ...of('c1'), startedAtMs: 4_000, state: 'compensating' }));
      await plant(anInstance({ ...of('cp'), startedAtMs: 1_500, state: 'compensating', failure }));
      await plant(anEnded('completed', { ...of('done', 'other'), startedAtMs: 100 }));
      await plant(anEnded('compensated', { ...of('undone'), startedAtMs: 50 }));
      const listed = async (query: Partial<SagaQuery>): Promise<readonly string[]> => {
        const found: string[] = [];
        let next: string | undefined;
        do {
          const page = await store.list({
            consumer,
            limit: 2,
            ...query,
            ...(next !== undefined && { after: next }),
          });
          assert.ok(page.items.length <= 2);
          found.push(...page.items.map(({ ref }) => ref.id));
          ({ next } = page);
        } while (next !== undefined);
        return found;
      };
      assert.deepEqual(await listed({ state: 'running' }), ['rp', 'r1', 'r2']);
      assert.deepEqual(await listed({ state: 'running', parked: false }), ['r1', 'r2']);
      assert.deepEqual(await listed({ state: 'compensating' }), ['c1', 'cp']);
      assert.deepEqual(await listed({ parked: true }), ['cp', 'rp']);
      assert.deepEqual(await listed({ state: 'running', parked: true }), ['rp']);
      assert.deepEqual(await listed({ state: 'completed' }), ['done']);
      assert.deepEqual(await listed({ state: 'compensated' }), ['undone']);
      assert.deepEqual(await listed({ state: 'completed', parked: true }), []);
      assert.deepEqual(await listed({ version: 1 }), ['r2']);
      assert.deepEqual(await listed({ saga: 'other' }), ['done']);
      assert.deepEqual(new Set(await listed({ startedBeforeMs: 1_500 })), new Set(['r1', 'done', 'undone']));
      assert.equal((await listed({})).length, 7);
    });

    test('a record that is not ours is refused whole, and changed by nothing', async (t) => {
      if (subject.plantUnrecognised === undefined) return t.diagnostic('nothing else writes there');
      const ref = refOf(randomUUID());
      await subject.plantUnrecognised(ref);
      const refusal = { code: 'UNREADABLE_SAGA' };
      await assert.rejects(store.read(ref), refusal);
      await assert.rejects(
        inTransaction(subject.inbox, (transaction) => store.readIn(transaction, ref)),
        refusal,
      );
    });

    const allDue = async (consumer: string, graceMs: number, limit: number): Promise<readonly string[]> => {
      const shards = Array.from({ length: store.shards }, async (_, shard) => {
        const items: { id: string; wakeAtMs: number }[] = [];
        let next: string | undefined;
        do {
          const page = await store.due(consumer, shard, graceMs, limit, next);
          assert.ok(page.items.length <= limit);
          items.push(...page.items.map(({ ref, wakeAtMs }) => ({ id: ref.id, wakeAtMs })));
          ({ next } = page);
        } while (next !== undefined);
        const times = items.map(({ wakeAtMs }) => wakeAtMs);
        assert.deepEqual(
          times,
          times.toSorted((one, other) => one - other),
        );
        return items.map(({ id }) => id);
      });
      return (await Promise.all(shards)).flat();
    };
  });
}
