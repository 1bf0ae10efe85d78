/**
 * What every ledger must do, as one suite over a factory: rules and storage are one step, times are the store's, and
 * what was written is read back as it was.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { Delayed } from '../tasks/task-body.ts';
import { fire, markDelivered, markScheduled, type Rule, scheduleByMessage } from './decide.ts';
import { type Entry, entryId, type ScheduleRef } from './entry.ts';
import type { DueEntry, TransactionalLedger } from './ledger.ts';

export type LedgerUnderTest<Transaction> = Readonly<{
  ledger: TransactionalLedger<Transaction>;
  transact<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result>;
  /** Writes an entry that no rule made. */
  plantUnrecognised?(id: string): Promise<void>;
  close(): Promise<void>;
}>;

export function ledgerContract<Transaction>(
  name: string,
  start: () => Promise<LedgerUnderTest<Transaction>>,
): void {
  describe(`the ledger contract, ${name}`, () => {
    let subject: LedgerUnderTest<Transaction>;
    let ledger: TransactionalLedger<Transaction>;
    before(async () => {
      subject = await start();
      ledger = subject.ledger;
    });
    after(() => subject.close());

    test('an entry is read back as it was written, in every state', async () => {
      const inFlight = [{ token: 'u', untilMs: 1_900_000_000_456 }];
      const full = anEntry({ floor: { atMs: 3, id: 'f' }, attempt: 7, inFlight });
      const { delayed: _, ...rest } = full;
      const entries: Entry[] = [
        full,
        { ...full, state: 'unscheduled' },
        { ...full, state: 'unscheduled', tried: { times: 2, atMs: 1_900_000_000_789 } },
        { ...full, state: 'firing', firing: { token: 't', untilMs: 1_900_000_000_123 } },
        { ...rest, state: 'delivered' },
        { ...rest, state: 'deadLettered' },
        { ...rest, state: 'refused' },
        { ...full, state: 'refused' },
        { ref: { ...full.ref, key: 'Łódź 🚀' }, ...cancelledFields },
        { ref: { consumer: 'c', source: 's', identity: 'i' }, ...cancelledFields },
      ];
      for (const entry of entries) {
        const id = randomUUID();
        assert.equal((await ledger.change(id, () => ({ answer: 'ok', entry }))).answer, 'ok');
        const found = await ledger.read(id);
        assert.deepEqual(found.entry, entry);
        assert.ok(found.nowMs > 0);
      }
    });

    test('an entry that is not there is absent, and a rule without an entry writes nothing', async () => {
      const id = randomUUID();
      const { answer } = await ledger.change(id, (entry) => ({ answer: entry }));
      assert.equal(answer, undefined);
      assert.equal((await ledger.read(id)).entry, undefined);
    });

    test('of sixteen tasks at once exactly one fires', async () => {
      const { id, generation } = await scheduled();
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, n) =>
          ledger.change(id, fire({ generation, token: `t${n}`, leaseMs: 30_000 })).catch((error: unknown) => {
            assert.match(String(error), /STORE_UNAVAILABLE|Firestore/);
            return { answer: 'no answer' };
          }),
        ),
      );
      assert.equal(answers.filter(({ answer }) => answer === 'fire').length, 1);
    });

    test('a rule that was committed answers the same when it is run again', async () => {
      const { id, generation } = await scheduled();
      const rule = fire({ generation, token: 'mine', leaseMs: 30_000 });
      assert.equal((await ledger.change(id, rule)).answer, 'fire');
      assert.equal((await ledger.change(id, rule)).answer, 'fire');
      assert.equal(
        (await ledger.change(id, markDelivered({ generation, token: 'mine' }))).answer,
        'delivered',
      );
    });

    test("a caller's transaction that read what another then changed is run again", async () => {
      const { id, generation } = await scheduled();
      const seen: (string | undefined)[] = [];
      const objects = new Set<unknown>();
      let other: Promise<unknown> | undefined;
      await subject.transact(async (transaction) => {
        objects.add(transaction);
        const { entry } = await ledger.readIn(transaction, id);
        seen.push(entry?.state);
        // Google's client locks what it reads: there the other one waits, and is not waited for.
        other ??= ledger.change(id, fire({ generation, token: 't', leaseMs: 30_000 }));
        await Promise.race([other, new Promise((resolve) => setTimeout(resolve, 50))]);
        if (entry?.state === 'scheduled') {
          ledger.writeIn(transaction, id, { ...entry, state: 'unscheduled' });
        }
      });
      await other;
      const { entry } = await ledger.read(id);
      assert.equal(entry?.state, 'firing');
      assert.ok(seen.length >= 1 && seen[0] === 'scheduled');
      assert.equal(objects.size, 1, 'the transaction object is the same in every run');
    });

    test('what is due is found, of its own consumer alone, each shard longest due first, page by page', async () => {
      const consumer = randomUUID();
      const ids: string[] = [];
      for (const atMs of [3_000, 1_000, 2_000]) {
        const id = randomUUID();
        ids.push(id);
        await plant(id, anEntry({ ref: { consumer, source: 's', key: id }, state: 'unscheduled', atMs }));
      }
      await plant(randomUUID(), anEntry({ state: 'unscheduled', atMs: 500 }));
      const future = Date.UTC(2100, 0, 1);
      const later = anEntry({
        ref: { consumer, source: 's', key: 'later' },
        state: 'unscheduled',
        atMs: future,
      });
      await plant(randomUUID(), later);
      const done = { ref: { consumer, source: 's', key: 'done' }, ...cancelledFields };
      await plant(randomUUID(), done);
      const found = await allDue(consumer, 2);
      assert.deepEqual(new Set(found), new Set(ids));
      assert.equal(found.length, 3);
      assert.equal(await ledger.pending(consumer), 4);
    });

    test('what is no longer pending is neither due nor listed', async () => {
      const { id, generation, ref } = await scheduled({ dueTimeMs: 1_000, atMs: 1_000 });
      const query = { ...ref, prefix: '', limit: 10 };
      assert.equal((await ledger.list(query)).items.length, 1);
      await ledger.change(id, fire({ generation, token: 't', leaseMs: 30_000 }));
      assert.equal((await ledger.list(query)).items.length, 1);
      await ledger.change(id, markDelivered({ generation, token: 't' }));
      assert.equal((await ledger.list(query)).items.length, 0);
      assert.deepEqual(await allDue(ref.consumer, 10), []);
    });

    test('what is refused with its message is listed and not due; without it, it is neither', async () => {
      const consumer = randomUUID();
      const past = { dueTimeMs: 1_000, atMs: 1_000 } as const;
      const refOf = (key: string) => ({ consumer, source: 's', key });
      await plant(randomUUID(), anEntry({ ref: refOf('kept'), state: 'refused', ...past }));
      const { delayed: _, ...given } = anEntry({ ref: refOf('refused'), state: 'refused', ...past });
      await plant(randomUUID(), given);
      const { items } = await ledger.list({ consumer, source: 's', prefix: '', limit: 10 });
      assert.deepEqual(
        items.map(({ ref }) => ref.key),
        ['kept'],
      );
      assert.deepEqual([await allDue(consumer, 10), await ledger.pending(consumer)], [[], 0]);
    });

    test('pending entries are listed by prefix in the order of keys, before a due time in its order', async () => {
      const consumer = randomUUID();
      const keys = ['a/2', 'a/1', 'b/1', 'a/10', 'a', 'Łódź 🚀'];
      for (const [index, key] of keys.entries()) {
        const ref = { consumer, source: 's', key };
        await plant(entryId(ref), anEntry({ ref, dueTimeMs: 1_000_000 * (10 - index) }));
      }
      const ours = { consumer, source: 's', limit: 2 };
      const all = async (query: { prefix: string; beforeMs?: number }): Promise<string[]> => {
        const found: string[] = [];
        let next: string | undefined;
        do {
          const page = await ledger.list({ ...ours, ...query, ...(next !== undefined && { after: next }) });
          found.push(...page.items.map(({ ref }) => ref.key ?? ''));
          ({ next } = page);
        } while (next !== undefined);
        return found;
      };
      assert.deepEqual(await all({ prefix: 'a/' }), ['a/1', 'a/10', 'a/2']);
      assert.deepEqual(await all({ prefix: '' }), ['a', 'a/1', 'a/10', 'a/2', 'b/1', 'Łódź 🚀']);
      assert.deepEqual(await all({ prefix: 'Łódź 🚀' }), ['Łódź 🚀']);
      assert.deepEqual(await all({ prefix: '', beforeMs: 8_000_000 }), ['Łódź 🚀', 'a', 'a/10']);
      assert.deepEqual(await all({ prefix: 'a/', beforeMs: 9_000_001 }), ['a/1', 'a/10']);
      assert.deepEqual(await all({ prefix: 'none' }), []);
    });

    test('a document that is not ours is refused whole, and found by the sweep as such', async (t) => {
      if (subject.plantUnrecognised === undefined) return t.diagnostic('no other program writes there');
      const id = randomUUID();
      await subject.plantUnrecognised(id);
      const refusal = { code: 'UNREADABLE_ENTRY' };
      const ours = { consumer: randomUUID(), source: 's', key: id };
      const due = anEntry({ ref: ours, state: 'unscheduled', atMs: 1_000 });
      const other = randomUUID();
      await plant(other, due);
      const [seen] = await allDueOf(ours.consumer, 5);
      assert.ok(seen?.id === other && seen.dueMs > 1_000);
      await ledger.defer({ ...seen, version: '1000000000' }, ours.consumer, Date.UTC(2100, 0, 1));
      assert.deepEqual(await allDue(ours.consumer, 5), [other], 'as it was seen alone');
      await ledger.defer(seen, ours.consumer, Date.UTC(2100, 0, 1));
      assert.deepEqual(await allDue(ours.consumer, 5), []);
      assert.deepEqual((await ledger.read(other)).entry, due);
      await assert.rejects(ledger.read(id), refusal);
      await assert.rejects(ledger.change(id, markScheduled({ generation: 'g' })), refusal);
    });

    /** The IDs, page by page. */
    const allDue = async (consumer: string, limit: number): Promise<readonly string[]> =>
      (await allDueOf(consumer, limit)).map(({ id }) => id);
    const allDueOf = async (consumer: string, limit: number): Promise<readonly DueEntry[]> => {
      const shards = Array.from({ length: ledger.shards }, async (_, shard) => {
        const items: DueEntry[] = [];
        let next: string | undefined;
        do {
          const page = await ledger.due(consumer, shard, limit, next);
          assert.ok(page.items.length <= limit);
          items.push(...page.items);
          ({ next } = page);
        } while (next !== undefined);
        const times = items.map(({ dueMs }) => dueMs);
        assert.ok(times.every((time) => time > 0 && time <= Date.UTC(2100, 0, 1)));
        assert.deepEqual(
          times,
          times.toSorted((one, other) => one - other),
        );
        return items;
      });
      return (await Promise.all(shards)).flat();
    };
    const plant = async (id: string, entry: Entry): Promise<void> => {
      const rule: Rule<string> = () => ({ answer: 'planted', entry });
      await ledger.change(id, rule);
    };
    const scheduled = async (change: Partial<Entry> = {}) => {
      const ref: ScheduleRef = { consumer: randomUUID(), source: 's', key: 'k' };
      const { delayed, generation, version } = anEntry();
      const id = entryId(ref);
      await ledger.change(id, (entry, nowMs) => {
        const decision = scheduleByMessage({ ref, version, generation, delayed: delayed! })(entry, nowMs);
        return { ...decision, entry: { ...decision.entry!, ...change } };
      });
      return { id, generation, ref };
    };
  });
}

const cancelledFields = {
  state: 'cancelled',
  version: { atMs: 1_893_456_000_001, id: '17' },
  generation: 'g',
  attempt: 0,
  atMs: 1_893_456_000_002,
} as const;

export function anEntry(change: Partial<Entry> = {}): Entry {
  const generation = change.generation ?? randomUUID();
  const dueTimeMs = change.dueTimeMs ?? 1_893_456_000_004;
  const ref = change.ref ?? { consumer: 'c', source: 'projects/p/subscriptions/s', key: randomUUID() };
  const delayed: Delayed = {
    key: entryId(ref),
    topic: 'projects/p/topics/t',
    dueTimeMs,
    scheduleTimeMs: dueTimeMs,
    attempt: 0,
    hop: 0,
    entry: { id: entryId(ref), generation },
    message: {
      id: '17',
      data: Buffer.from([0x00, 0xff, 0xfe, 0x80]),
      attributes: { dedupId: 'd', name: 'Łódź' },
      orderingKey: 'o',
      publishTime: new Date(1_893_456_000_001),
    },
  };
  const version = { atMs: 1_893_456_000_001, id: '17' };
  const fixed = { ref, version, state: 'scheduled', generation, attempt: 0 } as const;
  return { ...fixed, dueTimeMs, delayed, atMs: 1_893_456_000_002, ...change };
}
