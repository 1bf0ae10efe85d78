/**
 * What every store of the outbox must do, as a suite over a factory.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import type { OutgoingMessage } from '../message.ts';
import { outbox } from './outbox.ts';
import type { OutboxStore, PendingRow, StreamWrite } from './outbox-store.ts';
import { outgoingOf, type StreamRef } from './rows.ts';

export type OpenedOutbox<Tx> = Readonly<{
  store: OutboxStore<Tx>;
  transact<Result>(work: (transaction: Tx) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}>;

const message = (text: string): OutgoingMessage => ({ topic: 't', data: Buffer.from(text), attributes: {} });
const FREE: StreamWrite = {
  sent: 0,
  owner: undefined,
  leaseMs: 0,
  attempts: 0,
  nextTryMs: 0,
  halted: undefined,
};

export function outboxContract<Tx extends object>(name: string, open: () => Promise<OpenedOutbox<Tx>>): void {
  suite(`outbox store: ${name}`, () => {
    let opened: OpenedOutbox<Tx>;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());

    const add = (texts: readonly string[], slot: { sequenceKey?: string; id?: string } = {}) =>
      opened.transact(async (transaction) => {
        const reserved = await outbox(opened.store).reserve(transaction, slot);
        return reserved.add(...texts.map(message));
      });
    const streamOf = async (key: string): Promise<StreamRef> => {
      const ref = await opened.store.streamOf(key);
      assert.ok(ref !== undefined);
      return ref;
    };
    const pendingRows = async (limit: number): Promise<PendingRow[]> => {
      const all: PendingRow[] = [];
      for (let cursor: string | undefined, turn = 0; turn < 500; turn += 1) {
        const page = await opened.store.pending(0, cursor, limit);
        all.push(...page.rows);
        cursor = page.next;
        if (cursor === undefined) return all;
      }
      throw new Error('the pages have no end');
    };
    const rowIdOf = async (id: string): Promise<string> => {
      const before = new Set((await pendingRows(100)).map((row) => row.id));
      await add([id], { id });
      const fresh = (await pendingRows(100)).filter((row) => !before.has(row.id));
      assert.equal(fresh.length, 1);
      return fresh[0]?.id ?? '';
    };

    test('numbers of a key begin at 1, follow each other, and each row names the one before it', async () => {
      const key = `${randomUUID()} / Łódź`;
      assert.deepEqual((await add(['a'], { sequenceKey: key })).numbers, [1]);
      assert.deepEqual((await add(['b', 'c'], { sequenceKey: key })).numbers, [2, 3]);
      const ref = await streamOf(key);
      const rows = await opened.store.after(ref, 0, 10);
      assert.deepEqual(
        rows.map(({ place, isSent }) => [place.number, place.after, isSent]),
        [
          [1, 0, false],
          [2, 1, false],
          [3, 2, false],
        ],
      );
      const second = rows[1] && outgoingOf(rows[1]);
      const { sequence, sequenceKey, sequenceEpoch, dedupId } = second?.attributes ?? {};
      assert.deepEqual([sequence, sequenceKey, sequenceEpoch], ['2', key, ref.epoch]);
      assert.equal(dedupId, rows[1]?.id);
      assert.equal(Buffer.from(second?.data ?? '').toString(), 'b');
      assert.deepEqual(
        (await opened.store.after(ref, 1, 1)).map(({ place }) => place.number),
        [2],
      );
    });

    test('a transaction that is given up leaves no row and takes no number', async () => {
      const key = randomUUID();
      const given = opened.transact(async (transaction) => {
        (await outbox(opened.store).reserve(transaction, { sequenceKey: key })).add(message('a'));
        throw new Error('given up');
      });
      await assert.rejects(given, /given up/);
      assert.deepEqual((await add(['b'], { sequenceKey: key })).numbers, [1]);
    });

    test('B3: a call that is committed already has its numbers, and adds nothing', async () => {
      const key = randomUUID();
      const first = await add(['a', 'b'], { sequenceKey: key, id: 'order 42' });
      const again = await add(['a', 'b'], { sequenceKey: key, id: 'order 42' });
      assert.deepEqual([first.numbers, first.isRepeat], [[1, 2], false]);
      assert.deepEqual([again.numbers, again.isRepeat], [[1, 2], true]);
      assert.equal((await opened.store.after(await streamOf(key), 0, 10)).length, 2);
      const loose = randomUUID();
      assert.equal((await add(['a'], { id: loose })).isRepeat, false);
      assert.equal((await add(['a'], { id: loose })).isRepeat, true);
    });

    test('transactions of one key at the same time leave no number out and use none twice', async () => {
      const key = randomUUID();
      const added = await Promise.all(
        ['a', 'b', 'c', 'd'].map((text) => add([text, text], { sequenceKey: key })),
      );
      const numbers = added.flatMap((one) => one.numbers).toSorted((left, right) => left - right);
      assert.deepEqual(numbers, [1, 2, 3, 4, 5, 6, 7, 8]);
      const rows = await opened.store.after(await streamOf(key), 0, 10);
      assert.deepEqual(
        rows.map(({ place }) => place.after),
        [0, 1, 2, 3, 4, 5, 6, 7],
      );
    });

    test('a stream is written under its version alone, together with its rows', async () => {
      const { store } = opened;
      const key = randomUUID();
      await add(['a', 'b'], { sequenceKey: key });
      const ref = await streamOf(key);
      const rows = await store.after(ref, 0, 10);
      const absent = await store.readStream(ref);
      assert.deepEqual([absent.state, absent.version], [undefined, undefined]);
      const leased = { ...FREE, owner: 'me', leaseMs: 60_000 };
      const taken = await store.writeStream(ref, undefined, leased, []);
      assert.ok(taken !== undefined);
      assert.equal(await store.writeStream(ref, undefined, { ...leased, owner: 'you' }, []), undefined);
      const read = await store.readStream(ref);
      assert.deepEqual([read.version, read.state?.owner, read.state?.sent], [taken, 'me', 0]);
      const leftMs = (read.state?.untilMs ?? 0) - read.nowMs;
      assert.ok(leftMs > 30_000 && leftMs <= 60_000, `${leftMs}`);
      const halted = { number: 2, code: 'C', text: 't' };
      const moved = { ...FREE, sent: 1, attempts: 3, nextTryMs: read.nowMs + 1_000, halted };
      const next = await store.writeStream(ref, taken, moved, [rows[0]?.id ?? '']);
      assert.ok(next !== undefined && next !== taken);
      assert.equal(await store.writeStream(ref, taken, FREE, [rows[1]?.id ?? '']), undefined);
      const { state } = await store.readStream(ref);
      assert.deepEqual(
        [state?.sent, state?.owner, state?.attempts, state?.halted],
        [1, undefined, 3, halted],
      );
      assert.ok(Math.abs((state?.nextTryMs ?? 0) - moved.nextTryMs) <= 1);
      assert.deepEqual(
        (await store.after(ref, 0, 10)).map(({ isSent }) => isSent),
        [true, false],
      );
      const { streams } = await store.troubled(100);
      assert.deepEqual(
        streams.filter((one) => one.ref.key === key),
        [{ ref, halted, sent: 1 }],
      );
    });

    test('B2: pending rows come oldest first, page by page to the end, also rows of one commit', async () => {
      const { store } = opened;
      const key = randomUUID();
      await add(['a', 'b', 'c'], { sequenceKey: key });
      await add(['d'], { sequenceKey: key });
      const all = await pendingRows(2);
      const mine = all.filter(({ place }) => place?.key === key);
      assert.equal(new Set(all.map(({ id }) => id)).size, all.length);
      assert.deepEqual(new Set(mine.map(({ place }) => place?.number)), new Set([1, 2, 3, 4]));
      assert.equal(mine.length, 4);
      const times = all.map(({ createdMs }) => createdMs);
      assert.deepEqual(
        times,
        times.toSorted((left, right) => left - right),
      );
      const { rows, readMs } = await store.pending(times.at(-1) ?? 0, undefined, 100);
      assert.ok(rows.some(({ place }) => place?.number === 4 && place.key === key));
      assert.ok(readMs >= (times.at(-1) ?? Infinity));
      const ids = (await store.after(await streamOf(key), 0, 10)).map(({ id }) => id);
      await store.writeStream(await streamOf(key), undefined, { ...FREE, sent: 4 }, ids);
      assert.ok(!(await pendingRows(3)).some(({ place }) => place?.key === key));
    });

    test('B1: the bound is kept and never moves back', async () => {
      const { store } = opened;
      assert.equal(await store.bound(), 0);
      for (const [raised, expected] of [
        [5_000, 5_000],
        [4_000, 5_000],
        [9_000, 9_000],
      ] as const) {
        await store.raiseBound(raised);
        assert.equal(await store.bound(), expected);
      }
    });

    test('B37: a row without order is leased to one, and marked whoever has it', async () => {
      const { store } = opened;
      const id = await rowIdOf(randomUUID());
      const mine = await store.claim(id, 'me', 60_000);
      assert.equal(mine?.row.id, id);
      assert.equal(await store.claim(id, 'you', 60_000), undefined);
      await store.markSent([id, 'no such row']);
      assert.equal(await store.claim(id, 'you', 60_000), undefined);
      await store.putOff(id, mine?.version ?? '', { attempts: 1, nextTryMs: 0 });
      assert.ok(!(await pendingRows(100)).some((row) => row.id === id));
    });

    test('a lease that is over is taken, and its former owner puts nothing off', async () => {
      const { store } = opened;
      const id = await rowIdOf(randomUUID());
      const mine = await store.claim(id, 'me', 0);
      const yours = await store.claim(id, 'you', 0);
      assert.ok(mine !== undefined && yours !== undefined);
      await store.putOff(id, mine.version, { code: 'C', text: 't' });
      assert.equal((await store.claim(id, 'me', 0))?.attempts, 0);
    });

    test('a row that failed waits for its time, or for somebody', async () => {
      const { store } = opened;
      const id = await rowIdOf(randomUUID());
      const first = await store.claim(id, 'me', 60_000);
      assert.ok(first !== undefined);
      await store.putOff(id, first.version, { attempts: 1, nextTryMs: first.nowMs + 60_000 });
      assert.equal(await store.claim(id, 'me', 60_000), undefined);
      const other = await rowIdOf(randomUUID());
      const second = await store.claim(other, 'me', 60_000);
      await store.putOff(other, second?.version ?? '', { code: 'C', text: 'never' });
      assert.ok(!(await pendingRows(100)).some((row) => row.id === other));
      const failed = (await store.troubled(100)).rows.filter((row) => row.id === other);
      assert.deepEqual(failed, [{ id: other, code: 'C', text: 'never' }]);
      await store.reopen(other);
      assert.deepEqual(
        (await store.troubled(100)).rows.filter((row) => row.id === other),
        [],
      );
      assert.equal((await store.claim(other, 'me', 60_000))?.row.id, other);
    });
  });
}
