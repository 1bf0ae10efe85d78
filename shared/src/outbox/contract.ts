/**
 * What every store of the outbox must do, as a suite over a factory.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import type { OutgoingMessage } from '../message.ts';
import { outbox } from './outbox.ts';
import type { OutboxStore, PendingRow, StreamWrite } from './outbox-store.ts';
import { outgoingOf, type Row, type StreamRef } from './rows.ts';
import { encodeMessage } from '../stored-message.ts';

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
  blocked: undefined,
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
    /** Page by page, each shard longest due first. */
    const pendingRows = async (limit: number): Promise<PendingRow[]> => {
      const { store } = opened;
      const shards = Array.from({ length: store.shards }, async (_, shard) => {
        const all: PendingRow[] = [];
        for (let cursor: string | undefined, turn = 0; turn < 500; turn += 1) {
          const page = await store.pending(shard, 0, cursor, limit);
          all.push(...page.rows);
          cursor = page.next;
          if (cursor === undefined) break;
        }
        const times = all.map(({ dueMs }) => dueMs);
        assert.deepEqual(
          times,
          times.toSorted((left, right) => left - right),
        );
        return all;
      });
      return (await Promise.all(shards)).flat();
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

    test('a transaction that is rolled back leaves no row and takes no number', async () => {
      const key = randomUUID();
      const given = opened.transact(async (transaction) => {
        (await outbox(opened.store).reserve(transaction, { sequenceKey: key })).add(message('a'));
        throw new Error('rolled back');
      });
      await assert.rejects(given, /rolled back/);
      assert.deepEqual((await add(['b'], { sequenceKey: key })).numbers, [1]);
    });

    test('B3: a call that is committed already has its numbers, and adds nothing', async () => {
      const key = randomUUID();
      const first = await add(['a', 'b'], { sequenceKey: key, id: 'order 42' });
      const again = await add(['a', 'b'], { sequenceKey: key, id: 'order 42' });
      assert.deepEqual([first.numbers, first.isRepeat], [[1, 2], false]);
      assert.deepEqual([again.numbers, again.isRepeat], [[1, 2], true]);
      assert.equal((await opened.store.after(await streamOf(key), 0, 10)).length, 2);
      const unordered = randomUUID();
      assert.equal((await add(['a'], { id: unordered })).isRepeat, false);
      assert.equal((await add(['a'], { id: unordered })).isRepeat, true);
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
      const blocked = { number: 2, code: 'C', text: 't' };
      const moved = { ...FREE, sent: 1, attempts: 3, nextTryMs: read.nowMs + 1_000, blocked };
      const next = await store.writeStream(ref, taken, moved, [rows[0]?.id ?? '']);
      assert.ok(next !== undefined && next !== taken);
      assert.equal(await store.writeStream(ref, taken, FREE, [rows[1]?.id ?? '']), undefined);
      const { state } = await store.readStream(ref);
      assert.deepEqual(
        [state?.sent, state?.owner, state?.attempts, state?.blocked],
        [1, undefined, 3, blocked],
      );
      assert.ok(Math.abs((state?.nextTryMs ?? 0) - moved.nextTryMs) <= 1);
      assert.deepEqual(
        (await store.after(ref, 0, 10)).map(({ isSent }) => isSent),
        [true, false],
      );
      const { streams } = await store.listFailures(100);
      assert.deepEqual(
        streams.filter((one) => one.ref.key === key),
        [{ ref, blocked, sent: 1 }],
      );
    });

    test('B2: pending rows come longest due first, page by page to the end, also rows of one commit', async () => {
      const { store } = opened;
      const key = randomUUID();
      await add(['a', 'b', 'c'], { sequenceKey: key });
      await add(['d'], { sequenceKey: key });
      const all = await pendingRows(2);
      const mine = all.filter(({ place }) => place?.key === key);
      assert.equal(new Set(all.map(({ id }) => id)).size, all.length);
      assert.deepEqual(new Set(mine.map(({ place }) => place?.number)), new Set([1, 2, 3, 4]));
      assert.equal(mine.length, 4);
      // Of one stream in one shard; from a time on as well as from the first.
      const latest = Math.max(...mine.map(({ dueMs }) => dueMs));
      const shards = Array.from({ length: store.shards }, (_, shard) => shard);
      const pages = await Promise.all(shards.map((shard) => store.pending(shard, latest, undefined, 100)));
      const where = pages.filter(({ rows }) => rows.some(({ place }) => place?.key === key));
      assert.equal(where.length, 1);
      assert.ok(where[0]?.rows.some(({ place }) => place?.number === 4 && place.key === key));
      assert.ok(pages.every(({ readMs }) => readMs >= latest));
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

    test('B37: a row without order is leased to one, and marked whichever process has it', async () => {
      const { store } = opened;
      const id = await rowIdOf(randomUUID());
      const mine = await store.claim(id, 'me', 60_000);
      assert.equal(mine?.row.id, id);
      assert.equal(await store.claim(id, 'you', 60_000), undefined);
      await store.markSent([id, 'no such row']);
      assert.equal(await store.claim(id, 'you', 60_000), undefined);
      assert.equal(await store.look(id), undefined);
      await store.reschedule(id, mine?.version ?? '', { attempts: 1, nextTryMs: 0 });
      assert.ok(!(await pendingRows(100)).some((row) => row.id === id));
    });

    test('a row that is looked at says whose it is, and its writer’s lease alone can be taken over', async () => {
      const { store } = opened;
      const bytes = encodeMessage({
        ...message('a'),
        data: Buffer.from('a'),
        id: 'x',
        publishTime: new Date(0),
      });
      const group = randomUUID();
      const [mine, behind] = [`${group}.0`, `${group}.1`];
      const rowOf = (id: string): Row => ({ id, topic: 'projects/p/topics/t', message: bytes, group });
      await opened.transact(async (transaction) => {
        await store.readSlot(transaction, mine, undefined);
        const rows = [rowOf(mine), rowOf(behind)];
        store.writeSlot(transaction, { rows, lease: { owner: 'writer', leaseMs: 60_000 } });
      });
      const seen = await store.look(mine);
      assert.deepEqual([seen?.isSelected, seen?.isWriters, seen?.place], [true, true, undefined]);
      assert.ok(seen !== undefined && Math.abs(seen.nowMs - seen.createdMs) < 60_000);
      assert.equal((await store.look(behind))?.isSelected, false);
      assert.equal(await store.claim(mine, 'you', 60_000), undefined);
      assert.equal((await store.claim(mine, 'you', 60_000, { fromWriter: true }))?.row.id, mine);
      assert.equal((await store.look(mine))?.isWriters, false);
      assert.equal(await store.claim(mine, 'another', 60_000, { fromWriter: true }), undefined);

      const free = await rowIdOf(randomUUID());
      const without = await store.look(free);
      assert.deepEqual([without?.isSelected, without?.isWriters], [true, false]);
      const key = randomUUID();
      await add(['a', 'b'], { sequenceKey: key });
      const [, second] = await store.after(await streamOf(key), 0, 2);
      assert.deepEqual((await store.look(second?.id ?? ''))?.place, second?.place);
      assert.equal(await store.look('no such row'), undefined);
    });

    test('a lease that is over is taken, and its former owner puts nothing off', async () => {
      const { store } = opened;
      const id = await rowIdOf(randomUUID());
      const mine = await store.claim(id, 'me', 0);
      const yours = await store.claim(id, 'you', 0);
      assert.ok(mine !== undefined && yours !== undefined);
      await store.reschedule(id, mine.version, { code: 'C', text: 't' });
      assert.equal((await store.claim(id, 'me', 0))?.attempts, 0);
    });

    test('a row that failed waits for its time, or for an operator', async () => {
      const { store } = opened;
      const id = await rowIdOf(randomUUID());
      const first = await store.claim(id, 'me', 60_000);
      assert.ok(first !== undefined);
      await store.reschedule(id, first.version, { attempts: 1, nextTryMs: first.nowMs + 60_000 });
      assert.equal(await store.claim(id, 'me', 60_000), undefined);
      const other = await rowIdOf(randomUUID());
      const second = await store.claim(other, 'me', 60_000);
      await store.reschedule(other, second?.version ?? '', { code: 'C', text: 'never' });
      assert.ok(!(await pendingRows(100)).some((row) => row.id === other));
      const failed = (await store.listFailures(100)).rows.filter((row) => row.id === other);
      assert.deepEqual(failed, [{ id: other, code: 'C', text: 'never' }]);
      await store.reopen(other);
      assert.deepEqual(
        (await store.listFailures(100)).rows.filter((row) => row.id === other),
        [],
      );
      assert.equal((await store.claim(other, 'me', 60_000))?.row.id, other);
    });

    test('rows hold full names, whatever their writer called the topic', async () => {
      const key = randomUUID();
      await opened.transact(async (transaction) => {
        const slot = await outbox(opened.store).reserve(transaction, { sequenceKey: key });
        return slot.add(message('a'), { ...message('b'), topic: 'projects/shop/topics/orders' });
      });
      await opened.transact(async (transaction) => {
        const slot = await outbox(opened.store, { projectId: 'till' }).reserve(transaction, {
          sequenceKey: key,
        });
        return slot.add(message('c'));
      });
      const rows = await opened.store.after(await streamOf(key), 0, 10);
      const own = `projects/${opened.store.project()}/topics/t`;
      assert.deepEqual(
        rows.map((row) => outgoingOf(row).topic),
        [own, 'projects/shop/topics/orders', 'projects/till/topics/t'],
      );
    });

    test('rows that are parked are selected no more; their stream is, when it is due, until it is over', async () => {
      const { store } = opened;
      const key = randomUUID();
      await add(['a', 'b', 'c'], { sequenceKey: key });
      const ref = await streamOf(key);
      const ids = (await store.after(ref, 0, 10)).map(({ id }) => id);
      const mine = async () =>
        (await pendingRows(100))
          .filter(({ place, stream }) => (place ?? stream)?.key === key)
          .map(({ place, stream }) => (stream === undefined ? place?.number : stream));
      const { nowMs } = await store.readStream(ref);
      const parkedMs = nowMs - 1_000;
      const parkedAt = async (version: string | undefined, state: Partial<StreamWrite>) =>
        store.writeStream(ref, version, { ...FREE, parkedMs, ...state }, [], { parked: ids.slice(1) });
      const later = await parkedAt(undefined, { attempts: 1, nextTryMs: nowMs + 60_000 });
      assert.deepEqual([await mine(), (await store.readStream(ref)).state?.parkedMs], [[1], parkedMs]);
      assert.equal(await parkedAt(undefined, {}), undefined, 'under its version alone');
      const due = await store.writeStream(ref, later, { ...FREE, parkedMs, nextTryMs: nowMs - 1 }, []);
      assert.deepEqual(new Set(await mine()), new Set([1, ref]));
      const leased = { ...FREE, parkedMs, owner: 'me', leaseMs: 60_000 };
      const taken = await store.writeStream(ref, due, leased, []);
      assert.deepEqual(new Set(await mine()), new Set([1, ref]), 'its owner may die');
      const before = await store.countBlocked();
      const failure = { number: 1, code: 'C', text: 't' };
      const blocked = await store.writeStream(ref, taken, { ...FREE, parkedMs, blocked: failure }, []);
      assert.deepEqual([await mine(), await store.countBlocked()], [[1], before + 1]);
      const open = await store.writeStream(ref, blocked, { ...FREE, parkedMs }, []);
      assert.deepEqual(new Set(await mine()), new Set([1, ref]));
      assert.equal(await store.countBlocked(), before);
      await store.writeStream(ref, open, { ...FREE, sent: 3 }, ids, { isOver: true });
      assert.deepEqual([await mine(), (await store.readStream(ref)).state?.parkedMs], [[], undefined]);
    });

    test('a row that is rescheduled comes after the others, and so does one that cannot be used', async () => {
      const { store } = opened;
      const id = await rowIdOf(randomUUID());
      const claimed = await store.claim(id, 'me', 60_000);
      assert.ok(claimed !== undefined);
      const seen = async () => (await pendingRows(100)).some((row) => row.id === id);
      await store.reschedule(id, claimed.version, { attempts: 1, nextTryMs: claimed.nowMs + 60_000 });
      assert.equal(await seen(), false);
      const other = await rowIdOf(randomUUID());
      const stale = { id: other, version: '1000000000' };
      await store.defer(stale, claimed.nowMs + 60_000);
      const row = (await pendingRows(100)).find((one) => one.id === other);
      assert.ok(row !== undefined, 'it is deferred as it was seen alone');
      await store.defer(row, claimed.nowMs + 60_000);
      assert.ok(!(await pendingRows(100)).some((row) => row.id === other));
      assert.equal(
        (await store.claim(other, 'me', 60_000))?.row.id,
        other,
        'it is deferred and nothing else',
      );
    });

    test('of a group the first row is selected, leased for all, found by name, and replaced by the next', async () => {
      const { store } = opened;
      const name = `${randomUUID()}.w`;
      const group = ['a', 'b', 'c'].map((text, n): Row => {
        const bytes = encodeMessage({
          ...message(text),
          data: Buffer.from(text),
          id: 'x',
          publishTime: new Date(0),
        });
        return { id: `${name}.${n}`, topic: 'projects/p/topics/t', message: bytes, group: name };
      });
      const idOf = (n: number): string => `${name}.${n}`;
      const lease = { owner: 'writer', leaseMs: 60_000 };
      await opened.transact(async (transaction) => {
        // As a client wants it: a read before the first write.
        await store.readSlot(transaction, idOf(0), undefined);
        store.writeSlot(transaction, { rows: group, lease });
      });
      const selected = async () =>
        (await pendingRows(100)).map(({ id }) => id).filter((id) => id.startsWith(name));
      assert.deepEqual(await selected(), [idOf(0)]);
      const first = await store.first(`${name}.`);
      assert.deepEqual([first?.id, first?.isFailed], [idOf(0), false]);
      assert.ok((first?.freeMs ?? 0) > (first?.nowMs ?? Infinity));
      assert.equal(await store.claim(idOf(0), 'you', 60_000), undefined);
      const claimed = await store.claim(idOf(0), 'writer', 60_000);
      assert.equal(claimed?.row.group, name);
      const behind = await store.behind(name, idOf(0), 10);
      assert.deepEqual(
        behind.map((row) => Buffer.from(outgoingOf(row).data).toString()),
        ['b', 'c'],
      );
      assert.deepEqual((await store.behind(name, idOf(0), 1)).length, 1);
      const moved = { removed: [idOf(0)], next: idOf(1) };
      await store
        .reschedule(idOf(0), 'no such version', { attempts: 1, nextTryMs: 0 }, moved)
        .catch(() => {});
      assert.deepEqual(await selected(), [idOf(0)]);
      await store.reschedule(idOf(0), claimed?.version, { attempts: 1, nextTryMs: 0 }, moved);
      assert.deepEqual([await selected(), (await store.first(`${name}.`))?.id], [[idOf(1)], idOf(1)]);
      const next = await store.claim(idOf(1), 'you', 60_000);
      assert.equal(next?.attempts, 1);
      await store.reschedule(idOf(1), next?.version, { code: 'C', text: 'never' });
      assert.deepEqual([await selected(), (await store.first(`${name}.`))?.isFailed], [[], true]);
      await store.reopen(idOf(1));
      assert.deepEqual(await selected(), [idOf(1)]);
      await store.remove([idOf(1), idOf(2), 'no such row']);
      assert.equal(await store.first(`${name}.`), undefined);
    });
  });
}
