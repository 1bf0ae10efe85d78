/**
 * What every order store must do, as a suite over a factory. Consumers are named at random, so a store may be shared
 * and need not be empty.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { systemClock } from '../clock.ts';
import type { Message } from '../message.ts';
import { decodeMessage, encodeMessage } from '../stored-message.ts';
import { freshKey, type KeyPatch } from './key-state.ts';
import type { HeldMessage, KeyQuery, KeyRef, OrderStore } from './order-store.ts';

export type OpenedOrder = Readonly<{ store: OrderStore; close(): Promise<void> }>;

const FRESH = freshKey(1);
const LEASE = { owner: 'me', lengthMs: 5_000 };

export function orderContract(name: string, open: () => Promise<OpenedOrder>): void {
  suite(`order store: ${name}`, () => {
    const clock = systemClock();
    let opened: OpenedOrder;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());
    const store = (): OrderStore => opened.store;
    const newKey = (key = 'k'): KeyRef => ({ consumer: randomUUID(), key });
    const create = (ref: KeyRef, patch: KeyPatch): Promise<string | undefined> =>
      store().write(ref, { version: undefined, base: FRESH }, patch);
    const hold = (ref: KeyRef, held: HeldMessage): Promise<void> =>
      store().transact(ref, FRESH, { numbers: [held.number] }, () => ({ result: undefined, create: [held] }));
    const numbers = async (ref: KeyRef, from: number, limit = 100): Promise<number[]> =>
      (await store().held(ref, from, limit)).map(({ number }) => number);

    test('an absent key has no state and no version, but the store has a time', async () => {
      const view = await store().read(newKey());
      assert.deepEqual([view.state, view.version], [undefined, undefined]);
      assert.ok(Math.abs(view.nowMs - clock.now()) < 60_000);
    });

    test('what is written comes back, over the base and field by field', async () => {
      const ref = newKey('Łódź 日本 🚀 / #');
      const patch: KeyPatch = {
        last: 2 ** 53 - 1,
        epoch: 'e',
        attempts: 3,
        nextTryAt: 1_900_000_000_000,
        waitingSince: 1_900_000_000_001,
        gapAt: 7,
        readyAt: 1_900_000_000_002,
        repairedAt: 1_900_000_000_003,
        run: { number: 8, hash: 'h' },
        halted: { code: 'BAD', text: 'Łódź', atMs: 1_900_000_000_004 },
        skipped: [{ from: 2, to: 4 }],
        ring: ['x', '', 'y'],
      };
      const version = await create(ref, patch);
      const view = await store().read(ref);
      assert.equal(view.version, version);
      assert.deepEqual(view.state, { ...FRESH, ...patch });
      await store().write(
        ref,
        { version, base: FRESH },
        { run: null, readyAt: null, ring: [], nextTryAt: 0 },
      );
      const cleared = { ...FRESH, ...patch, run: null, readyAt: null, ring: [], nextTryAt: 0 };
      assert.deepEqual((await store().read(ref)).state, cleared);
    });

    test('a lease ends its length after the commit, on the clock that reads are judged by', async () => {
      const ref = newKey();
      const sent = await store().read(ref);
      const version = await create(ref, { lease: LEASE });
      const { state, nowMs } = await store().read(ref);
      const untilMs = state?.lease?.untilMs ?? 0;
      assert.equal(state?.lease?.owner, 'me');
      assert.ok(
        sent.nowMs + 5_000 <= untilMs + 1 && untilMs <= nowMs + 5_001,
        `${sent.nowMs} ${untilMs} ${nowMs}`,
      );
      await store().write(ref, { version, base: FRESH }, { attempts: 1 });
      assert.equal((await store().read(ref)).state?.lease?.untilMs, untilMs, 'a mark does not move a lease');
      const marked = await store().read(ref);
      await store().write(ref, { version: marked.version, base: FRESH }, { lease: null });
      assert.equal((await store().read(ref)).state?.lease, null);
    });

    test('versions grow, are the update time in microseconds, and guard every write', async () => {
      const ref = newKey();
      const first = await create(ref, { last: 1 });
      const second = await store().write(ref, { version: first, base: FRESH }, { last: 2 });
      assert.ok(first !== undefined && second !== undefined && BigInt(second) > BigInt(first));
      assert.ok(Math.abs(Number(second) / 1_000 - clock.now()) < 60_000);
      await hold(ref, heldAs(3));
      assert.equal(await store().write(ref, { version: first, base: FRESH }, { last: 9 }, [3]), undefined);
      assert.equal(await create(ref, { last: 9 }), undefined);
      assert.equal((await store().read(ref)).state?.last, 2);
      assert.deepEqual(await numbers(ref, 1), [3], 'a refused write removes nothing');
      assert.ok(await store().write(ref, { version: second, base: FRESH }, { last: 3 }, [3, 4]));
      assert.deepEqual(await numbers(ref, 1), []);
    });

    test('B47: of sixteen parallel claims of one new key exactly one wins', async () => {
      const ref = newKey();
      const claims = Array.from({ length: 16 }, (_, index) =>
        create(ref, { lease: { owner: `o${index}`, lengthMs: 5_000 } }),
      );
      const versions = await Promise.all(claims);
      assert.equal(versions.filter((version) => version !== undefined).length, 1);
      const winner = versions.findIndex((version) => version !== undefined);
      assert.equal((await store().read(ref)).state?.lease?.owner, `o${winner}`);
    });

    test('B25: a held message keeps every byte and attribute', async () => {
      const ref = newKey();
      const payloads = [Buffer.from([0, 255, 0xfe]), Buffer.alloc(0), Buffer.from([31, 139, 8, 0])];
      for (const data of payloads) {
        const message: Message = {
          id: '1',
          data,
          attributes: { name: 'Łódź 日本 🚀' },
          publishTime: new Date(7),
          orderingKey: 'k',
        };
        await hold(ref, { ...heldAs(data.length + 1), message: encodeMessage(message) });
        const [held] = await store().held(ref, data.length + 1, 1);
        assert.deepEqual(decodeMessage(held?.message ?? Buffer.alloc(0)), message);
      }
    });

    test('the largest message that may be held can be held', async () => {
      const ref = newKey();
      await hold(ref, {
        ...heldAs(1),
        source: 's'.repeat(300),
        message: Buffer.alloc(store().maxHeldBytes, 1),
      });
      assert.equal((await store().held(ref, 1, 1))[0]?.message.length, store().maxHeldBytes);
    });

    test('held messages come in the order of their numbers, from one on, up to a limit', async () => {
      const ref = newKey();
      for (const number of [10, 9, 100, 2, 2 ** 53 - 1]) await hold(ref, heldAs(number));
      await hold({ ...ref, key: 'another' }, heldAs(3));
      assert.deepEqual(await numbers(ref, 1, 3), [2, 9, 10]);
      assert.deepEqual(await numbers(ref, 10), [10, 100, 2 ** 53 - 1]);
      assert.deepEqual((await store().held(ref, 9, 1))[0], { ...heldAs(9) });
    });

    test('a transaction sees the key and what it asks for, and writes all of it or nothing', async () => {
      const ref = newKey();
      const found = await store().transact(ref, FRESH, { numbers: [5] }, (state, held, nowMs) => ({
        result: [state, held, Math.abs(nowMs - clock.now()) < 60_000],
        create: [heldAs(5)],
        patch: { waitingSince: nowMs, gapAt: state.last },
      }));
      assert.deepEqual(found, [FRESH, [], true]);
      await hold(ref, heldAs(6));
      const { version } = await store().read(ref);
      const seen = await store().transact(ref, FRESH, { from: 5, limit: 1 }, (state, held) => ({
        result: [state.gapAt, held.map(({ number }) => number)],
      }));
      assert.deepEqual(seen, [0, [5]]);
      assert.equal((await store().read(ref)).version, version, 'a decision to write nothing writes nothing');
      await store().transact(ref, FRESH, { from: 5, limit: 2 }, () => ({
        result: undefined,
        patch: { last: 6 },
        remove: [5, 6],
      }));
      assert.deepEqual([(await store().read(ref)).state?.last, await numbers(ref, 1)], [6, []]);
    });

    test('transactions that read the same key do not lose an update', async () => {
      const ref = newKey();
      await create(ref, { attempts: 0 });
      const outcomes = await Promise.allSettled(
        Array.from({ length: 6 }, () =>
          store().transact(ref, FRESH, { numbers: [1] }, (state) => ({
            result: undefined,
            patch: { attempts: state.attempts + 1 },
          })),
        ),
      );
      const committed = outcomes.filter(({ status }) => status === 'fulfilled').length;
      assert.ok(committed > 0);
      assert.equal((await store().read(ref)).state?.attempts, committed);
    });

    test('no held message appears in what a transaction has queried before it commits', async () => {
      // One lets go of the key if nothing is held; the other holds only while the key is not let go of.
      // Some servers let the loser wait for seconds: then fewer rounds are enough.
      const enough = clock.monotonic() + 4_000;
      for (let round = 0; round < 12 && (round === 0 || clock.monotonic() < enough); round += 1) {
        const ref = newKey();
        await create(ref, { readyAt: 1 });
        const results = await Promise.allSettled([
          store().transact(ref, FRESH, { from: 1, limit: 1 }, (_, held) => ({
            result: 'release',
            ...(held.length === 0 && { patch: { readyAt: null } }),
          })),
          store().transact(ref, FRESH, { numbers: [2] }, (state) => ({
            result: 'hold',
            ...(state.readyAt !== null && { create: [heldAs(2)] }),
          })),
        ]);
        assert.ok(results.some(({ status }) => status === 'fulfilled'));
        const isHeld = (await numbers(ref, 1)).length === 1;
        const isReady = (await store().read(ref)).state?.readyAt !== null;
        assert.ok(!isHeld || isReady, `round ${round}: held beside a key that was let go of`);
      }
    });

    test('ready keys are those of the consumer whose time has come, oldest first', async () => {
      const { consumer } = newKey();
      const now = (await store().read({ consumer, key: 'a' })).nowMs;
      const times = { a: now - 10, b: now - 30_000, c: now + 60_000, d: null, e: now - 20_000 };
      for (const [key, readyAt] of Object.entries(times))
        await create({ consumer, key }, { readyAt, last: 4 });
      await create(newKey('f'), { readyAt: now - 40_000 });
      const found = await store().ready(consumer, 10);
      assert.deepEqual(
        found.map(({ ref }) => ref.key),
        ['b', 'e', 'a'],
      );
      const [first] = await store().ready(consumer, 1);
      assert.ok(first !== undefined && 'state' in first);
      assert.deepEqual([first.ref, first.state.last], [{ consumer, key: 'b' }, 4]);
      assert.equal((await store().read(first.ref)).version, first.version);
    });

    test('lists have the keys of one state, the oldest first, page by page, and count them', async () => {
      const { consumer } = newKey();
      const now = (await store().read({ consumer, key: 'a' })).nowMs;
      const halted = (atMs: number) => ({ halted: { code: 'c', text: '', atMs } });
      const made: Record<string, KeyPatch> = {
        a: { waitingSince: now - 30_000, gapAt: 0 },
        b: { waitingSince: now - 90_000, gapAt: 0 },
        c: { waitingSince: now - 60_000, gapAt: 0 },
        d: { waitingSince: now - 60_000, gapAt: 0 },
        e: halted(now - 20_000),
        f: halted(now - 40_000),
        g: { readyAt: now - 10_000 },
        h: { readyAt: now + 60_000 },
      };
      for (const [key, patch] of Object.entries(made)) await create({ consumer, key }, patch);
      await create(newKey(), halted(now - 50_000));
      const listed = async (query: Omit<KeyQuery, 'limit'>, limit: number): Promise<string[]> => {
        const found: string[] = [];
        let after: string | undefined;
        do {
          const page = await store().list(consumer, {
            ...query,
            limit,
            ...(after !== undefined && { after }),
          });
          assert.ok(page.keys.length <= limit);
          found.push(...page.keys.map(({ ref }) => ref.key));
          after = page.next;
        } while (after !== undefined && found.length < 20);
        return found;
      };
      const waiting = await listed({ state: 'waiting' }, 1);
      assert.deepEqual([waiting[0], waiting.slice(1, 3).toSorted(), waiting[3]], ['b', ['c', 'd'], 'a']);
      const old = await listed({ state: 'waiting', forMs: 45_000 }, 2);
      assert.deepEqual(old.toSorted(), ['b', 'c', 'd']);
      assert.deepEqual(await listed({ state: 'halted' }, 1), ['f', 'e']);
      assert.deepEqual(await listed({ state: 'ready' }, 10), ['g']);
      assert.deepEqual((await listed({ state: 'any' }, 3)).toSorted(), Object.keys(made));
      const counts = await Promise.all(
        (['any', 'waiting', 'halted', 'ready'] as const).map((state) => store().count(consumer, state)),
      );
      assert.deepEqual(counts, [8, 4, 2, 1]);
      const [first] = (await store().list(consumer, { state: 'halted', limit: 1 })).keys;
      assert.ok(first !== undefined && 'state' in first);
      assert.deepEqual([first.state.halted?.atMs, first.ref], [now - 40_000, { consumer, key: 'f' }]);
      assert.equal((await store().read(first.ref)).version, first.version);
    });

    test('one transaction sees and stores several held messages; one waits in the payload room', async () => {
      const ref = newKey();
      const payload = { id: 'an id', bytes: 5_000_000, digest: 'd' };
      const large = { ...heldAs(7), message: new Uint8Array(), payload };
      await opened.store.transact(ref, FRESH, { numbers: [5, 7] }, (_, held) => {
        assert.deepEqual(held, []);
        return { result: undefined, create: [heldAs(5), large] };
      });
      const seen = await opened.store.transact(ref, FRESH, { numbers: [7, 6, 5] }, (_, held) => ({
        result: new Map(held.map((one) => [one.number, one])),
      }));
      assert.deepEqual([seen.size, seen.get(5)?.payload, seen.get(7)?.payload], [2, undefined, payload]);
      assert.deepEqual([seen.get(5)?.message.length, seen.get(7)?.message.length], [1, 0]);
    });

    test('held messages of one key are counted', async () => {
      const ref = newKey();
      assert.equal(await store().countHeld(ref), 0);
      for (const number of [3, 9]) await hold(ref, heldAs(number));
      await hold({ ...ref, key: 'another' }, heldAs(3));
      assert.equal(await store().countHeld(ref), 2);
    });
  });
}

const heldAs = (number: number): HeldMessage => ({
  number,
  hash: `hash of ${number}`,
  source: 'projects/p/subscriptions/s',
  message: Buffer.from([number % 256]),
});
