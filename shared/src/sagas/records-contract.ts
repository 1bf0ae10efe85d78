/**
 * What every store of step records must do, as one suite over a factory: a record is part of its command's transaction, a
 * handler's writes can be dropped, and a rule and its record are one step.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { InboxStore } from '../dedup/inbox-store.ts';
import type { StepRecord, StepRecords, StepRef } from './step-records.ts';
import { aRecord, inTransaction } from '../testing/saga-samples.ts';

export type RecordsUnderTest<Tx> = Readonly<{
  records: StepRecords<Tx>;
  inbox: InboxStore<Tx>;
  /** Of a handler's own, beside the records. */
  get(transaction: Tx, id: string): Promise<number>;
  set(transaction: Tx, id: string, value: number): void;
  /** What is committed; 0 where there is nothing. */
  read(id: string): Promise<number>;
  plantUnrecognised?(ref: StepRef): Promise<void>;
  close(): Promise<void>;
}>;

export function stepRecordsContract<Tx>(name: string, start: () => Promise<RecordsUnderTest<Tx>>): void {
  describe(`the contract of step records, ${name}`, () => {
    let subject: RecordsUnderTest<Tx>;
    let records: StepRecords<Tx>;
    before(async () => {
      subject = await start();
      records = subject.records;
    });
    after(() => subject.close());

    const look = (ref: StepRef): Promise<StepRecord | undefined> =>
      records.change(ref, (record) => ({ answer: record }));

    test('a record is read back as it was written, in every state', async () => {
      const written: StepRecord[] = [
        aRecord(),
        aRecord({ state: 'started', reply: '', body: '{"x":"Łódź 🚀"}' }),
        aRecord({ state: 'refused', reply: '', code: 'LIMIT' }),
        aRecord({ state: 'cancelled', reply: '' }),
        aRecord({ state: 'undoing' }),
        aRecord({ state: 'undone', reply: '[[1],[2]]' }),
      ];
      for (const record of written) {
        await inTransaction(subject.inbox, async (transaction) => {
          assert.equal(await records.readIn(transaction, record.ref), undefined);
          records.writeIn(transaction, record);
        });
        const found = await inTransaction(subject.inbox, (tx) => records.readIn(tx, record.ref));
        assert.deepEqual(found, record);
        assert.deepEqual(await look(record.ref), record);
      }
    });

    test('each consumer, saga, instance and step has a record of its own', async () => {
      const { ref } = aRecord();
      await records.change(ref, () => ({ answer: 'ok', record: aRecord({ ref }) }));
      for (const name of ['consumer', 'saga', 'id', 'step'] as const)
        assert.equal(await look({ ...ref, [name]: randomUUID() }), undefined);
    });

    test('what replaces a record leaves nothing of it behind', async () => {
      const { ref } = aRecord();
      for (const record of [aRecord({ ref, state: 'started', body: '1' }), aRecord({ ref, state: 'done' })]) {
        await records.change(ref, () => ({ answer: 'ok', record }));
        assert.deepEqual(await look(ref), record);
      }
    });

    test('of sixteen rules at once each sees what the others left', async () => {
      const { ref } = aRecord();
      const answers = await Promise.all(
        Array.from({ length: 16 }, () =>
          records
            .change(ref, (record) => {
              const count = Number(record?.reply ?? '0') + 1;
              return { answer: count, record: aRecord({ ref, reply: String(count) }) };
            })
            .catch(() => 0),
        ),
      );
      const counted = answers.filter((answer) => answer > 0);
      assert.equal(new Set(counted).size, counted.length);
      assert.ok(Number((await look(ref))?.reply) >= counted.length);
    });

    test('the writes of a handler are made when they are applied, or never', async () => {
      const [kept, dropped] = [randomUUID(), randomUUID()];
      await inTransaction(subject.inbox, async (transaction) => {
        const { transaction: first } = records.buffered(transaction);
        subject.set(first, dropped, 1);
        const { transaction: second, apply } = records.buffered(transaction);
        subject.set(second, kept, (await subject.get(second, kept)) + 1);
        apply();
      });
      assert.deepEqual([await subject.read(kept), await subject.read(dropped)], [1, 0]);
    });

    test('a handler that reads after it has written is refused, as in any transaction of the store', async () => {
      const reading = inTransaction(subject.inbox, async (transaction) => {
        const { transaction: inner } = records.buffered(transaction);
        subject.set(inner, randomUUID(), 1);
        await subject.get(inner, randomUUID());
      });
      await assert.rejects(reading, /reads before/);
    });

    test('a record that is not ours is refused whole', async (t) => {
      if (subject.plantUnrecognised === undefined) return t.diagnostic('nothing else writes there');
      const { ref } = aRecord();
      await subject.plantUnrecognised(ref);
      await assert.rejects(look(ref), { code: 'UNREADABLE_STEP' });
    });
  });
}
