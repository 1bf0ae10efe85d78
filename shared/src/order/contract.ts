/**
 * What every stream store must do, as a suite over a factory: a case for each promise of the ports. Consumers are named
 * at random, so a store may be shared and need not be empty.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { systemClock } from '../clock.ts';
import { PermanentError } from '../errors.ts';
import type { Message } from '../message.ts';
import { decodeMessage, encodeMessage } from '../stored-message.ts';
import { listContract } from './list-contract.ts';
import { heldAs, newStream, patchOf } from '../testing/stream-samples.ts';
import { freshStream, type StreamFields, type StreamState } from './stream-state.ts';
import type { HeldMessage, StreamAdmin, StreamRef, StreamStore } from './stream-store.ts';

export type OpenedStreams = Readonly<{ store: StreamStore & StreamAdmin; close(): Promise<void> }>;

const FRESH = freshStream(1);
const LEASE = { owner: 'me', lengthMs: 5_000, to: 1 };

export function streamStoreContract(name: string, open: () => Promise<OpenedStreams>): void {
  suite(`stream store: ${name}`, () => {
    const clock = systemClock();
    let opened: OpenedStreams;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());
    const store = (): StreamStore & StreamAdmin => opened.store;

    type Held = Readonly<{ create?: readonly HeldMessage[]; remove?: readonly number[] }>;
    const commit = (
      ref: StreamRef,
      version: string | undefined,
      fields: StreamFields,
      held: Held = {},
      state: StreamState = FRESH,
    ): Promise<string | undefined> =>
      store().commit(ref, { version, state }, { patch: patchOf(fields), ...held });
    const numbers = async (ref: StreamRef, from = 1, limit = 100): Promise<number[]> =>
      (await store().held(ref, from, limit)).map(({ number }) => number);
    const stateOf = async (ref: StreamRef): Promise<StreamState | undefined> =>
      (await store().read(ref)).state;

    test('an absent stream has no state and no version, but the store has a time', async () => {
      const document = await store().read(newStream());
      assert.deepEqual([document.state, document.version], [undefined, undefined]);
      assert.ok(Math.abs(document.nowMs - clock.now()) < 60_000);
    });

    test('what is written comes back, over the base and field by field', async () => {
      const ref = newStream('Łódź 日本 🚀 / #');
      const fields: StreamFields = {
        last: 2 ** 53 - 1,
        epoch: 'e',
        held: 4,
        attempts: 3,
        suspectsTo: 12,
        nextTryAt: 1_900_000_000_000,
        waitingSince: 1_900_000_000_001,
        gapAt: 7,
        readyAt: 1_900_000_000_002,
        repairedAt: 1_900_000_000_003,
        run: { number: 8, hashes: ['h', 'i'] },
        blocked: { code: 'BAD', text: 'Łódź', atMs: 1_900_000_000_004 },
        skipped: [{ from: 2, to: 4 }],
        recentHashes: ['x', '', 'y'],
        opening: 9,
      };
      const patch = patchOf(fields);
      const version = await store().commit(ref, { version: undefined, state: FRESH }, { patch });
      const document = await store().read(ref);
      assert.equal(document.version, version);
      assert.deepEqual(document.state, { ...FRESH, ...patch });
      const cleared = {
        run: null,
        readyAt: null,
        waitingSince: null,
        recentHashes: [],
        nextTryAt: 0,
        blocked: null,
      };
      await commit(ref, version, cleared);
      const { commit: _, ...rest } = { ...FRESH, ...fields, ...cleared, commit: '' };
      const { commit: id, ...found } = (await stateOf(ref)) ?? FRESH;
      assert.deepEqual(found, rest);
      assert.notEqual(id, patch.commit);
    });

    test('the base of an absent stream is written with its first patch', async () => {
      const ref = newStream();
      const base = { ...freshStream(40), epoch: 'e', skipped: [{ from: 1, to: 39 }], opening: 50 };
      await commit(ref, undefined, { attempts: 1 }, {}, base);
      const { commit: _, ...found } = (await stateOf(ref)) ?? FRESH;
      const { commit: __, ...wanted } = { ...base, attempts: 1 };
      assert.deepEqual(found, wanted);
    });

    test('a lease ends its length after the commit, on the clock that reads are judged by', async () => {
      const ref = newStream();
      const sent = await store().read(ref);
      const version = await commit(ref, undefined, { lease: LEASE });
      const { state, nowMs } = await store().read(ref);
      const untilMs = state?.lease?.untilMs ?? 0;
      assert.equal(state?.lease?.owner, 'me');
      assert.ok(
        sent.nowMs + 5_000 <= untilMs + 1 && untilMs <= nowMs + 5_001,
        `${sent.nowMs} ${untilMs} ${nowMs}`,
      );
      const next = await commit(ref, version, { attempts: 1 });
      assert.equal((await stateOf(ref))?.lease?.untilMs, untilMs, 'another commit does not move a lease');
      await commit(ref, next, { lease: null });
      assert.equal((await stateOf(ref))?.lease, null);
    });

    test('versions grow with every commit, are the update time in microseconds, and guard every commit', async () => {
      const ref = newStream();
      const first = await commit(ref, undefined, { last: 1 });
      const second = await commit(ref, first, { held: 1 }, { create: [heldAs(3)] });
      assert.ok(first !== undefined && second !== undefined && BigInt(second) > BigInt(first));
      assert.ok(Math.abs(Number(second) / 1_000 - clock.now()) < 60_000);
      assert.equal(await commit(ref, first, { last: 9 }, { create: [heldAs(4)], remove: [3] }), undefined);
      assert.equal(await commit(ref, undefined, { last: 9 }), undefined);
      assert.deepEqual([(await stateOf(ref))?.last, await numbers(ref)], [1, [3]]);
      assert.ok(await commit(ref, second, { last: 3 }, { remove: [3, 4] }), 'what is not there is removed');
      assert.deepEqual(await numbers(ref), []);
    });

    test('a commit whose message exists is refused as a whole', async () => {
      const ref = newStream();
      const version = await commit(ref, undefined, { held: 2 }, { create: [heldAs(3), heldAs(5)] });
      const change = { create: [heldAs(4), heldAs(5)], remove: [3] };
      assert.equal(await commit(ref, version, { held: 9, last: 9 }, change), undefined);
      assert.deepEqual([(await stateOf(ref))?.last, await numbers(ref)], [0, [3, 5]]);
      assert.equal((await store().read(ref)).version, version);
    });

    test('a hold and a removal that leave as many held still advance the version', async () => {
      const ref = newStream();
      let version = await commit(ref, undefined, { held: 1 }, { create: [heldAs(2)] });
      for (let number = 3; number < 6; number += 1) {
        const before = version;
        const change = { create: [heldAs(number)], remove: [number - 1] };
        version = await commit(ref, before, { held: 1 }, change);
        assert.ok(version !== undefined && BigInt(version) > BigInt(before ?? 0));
        assert.equal(await commit(ref, before, { last: 9 }), undefined);
      }
    });

    test('B47: of sixteen parallel commits on one version exactly one is applied, absent or not', async () => {
      const ref = newStream();
      for (const round of [0, 1]) {
        const { version } = await store().read(ref);
        const versions = await Promise.all(
          Array.from({ length: 16 }, (_, index) =>
            commit(ref, version, { lease: { owner: `o${round} ${index}`, lengthMs: 5_000, to: 1 } }),
          ),
        );
        assert.equal(versions.filter((one) => one !== undefined).length, 1);
        const winner = versions.findIndex((one) => one !== undefined);
        assert.equal((await stateOf(ref))?.lease?.owner, `o${round} ${winner}`);
      }
    });

    test('B25: a held message keeps every byte and attribute, and what is in the payload store its reference', async () => {
      const ref = newStream();
      const datas = [Buffer.from([0, 255, 0xfe]), Buffer.alloc(0), Buffer.from([31, 139, 8, 0])];
      let version: string | undefined;
      for (const [index, data] of datas.entries()) {
        const message: Message = {
          id: '1',
          data,
          attributes: { name: 'Łódź 日本 🚀' },
          publishTime: new Date(7),
          orderingKey: 'k',
        };
        const held = { ...heldAs(index + 1), message: encodeMessage(message) };
        version = await commit(ref, version, { held: index + 1 }, { create: [held] });
        const [found] = await store().held(ref, index + 1, 1);
        assert.deepEqual(decodeMessage(found?.message ?? Buffer.alloc(0)), message);
      }
      const payload = { id: 'an id', bytes: 5_000_000, digest: 'd' };
      await commit(ref, version, {}, { create: [{ ...heldAs(9), message: new Uint8Array(), payload }] });
      const [large] = await store().held(ref, 9, 1);
      assert.deepEqual([large?.payload, large?.message.length], [payload, 0]);
    });

    test('the largest message that may be held can be held', async () => {
      const ref = newStream();
      const message = Buffer.alloc(store().maxHeldBytes, 1);
      await commit(ref, undefined, {}, { create: [{ ...heldAs(1), source: 's'.repeat(300), message }] });
      assert.equal((await store().held(ref, 1, 1))[0]?.message.length, store().maxHeldBytes);
    });

    test('held messages come in the order of their numbers, from one on, up to a limit, of their stream alone', async () => {
      const ref = newStream();
      const all = [10, 9, 100, 2, 2 ** 53 - 1];
      await commit(ref, undefined, { held: 5 }, { create: all.map(heldAs) });
      for (const other of [
        { ...ref, key: 'another' },
        { ...ref, source: 'another' },
        { ...ref, consumer: randomUUID() },
      ]) {
        await commit(other, undefined, { held: 1, last: 7 }, { create: [heldAs(3)] });
      }
      assert.deepEqual(await numbers(ref, 1, 3), [2, 9, 10]);
      assert.deepEqual(await numbers(ref, 10), [10, 100, 2 ** 53 - 1]);
      assert.deepEqual((await store().held(ref, 9, 1))[0], heldAs(9));
      assert.equal((await stateOf(ref))?.last, 0);
      assert.deepEqual([await store().countHeld(ref), await store().countHeld(newStream())], [5, 0]);
    });

    test('a transaction reads the document and what is held, and commits all of it or nothing', async () => {
      const ref = newStream();
      const made = await store().transact(ref, async ({ read, held, commit: write }) => {
        const { state, version, nowMs } = await read();
        assert.deepEqual([state, version, await held(1, 9)], [undefined, undefined, []]);
        assert.ok(Math.abs(nowMs - clock.now()) < 60_000);
        write(FRESH, { patch: patchOf({ held: 2 }), create: [heldAs(5), heldAs(6)] });
        return 'made';
      });
      assert.deepEqual(made, { applied: true, result: 'made' });
      const { version } = await store().read(ref);
      const looked = await store().transact(ref, async ({ read, held }) => [
        (await read()).version,
        (await held(5, 1)).map(({ number }) => number),
      ]);
      assert.deepEqual(looked, { applied: true, result: [version, [5]] });
      assert.equal((await store().read(ref)).version, version, 'no commit writes nothing');
      await store().transact(ref, async ({ read, commit: write }) => {
        const { state } = await read();
        write(state ?? FRESH, { patch: patchOf({ last: 6, held: 0 }), remove: [5, 6, 7] });
      });
      assert.deepEqual([(await stateOf(ref))?.last, await numbers(ref)], [6, []]);
    });

    test('a transaction that creates what exists is not applied, and one whose work rejects writes nothing', async () => {
      const ref = newStream();
      const version = await commit(ref, undefined, { held: 1 }, { create: [heldAs(5)] });
      const twice = await store().transact(ref, async ({ read, commit: write }) => {
        const { state } = await read();
        write(state ?? FRESH, { patch: patchOf({ last: 9 }), create: [heldAs(6), heldAs(5)] });
        return 'planned';
      });
      assert.deepEqual(twice, { applied: false, result: 'planned' });
      const failing = store().transact(ref, async ({ read, commit: write }) => {
        const { state } = await read();
        write(state ?? FRESH, { patch: patchOf({ last: 9 }) });
        throw new PermanentError('MADE_FOR_A_TEST', 'never');
      });
      await assert.rejects(failing, { code: 'MADE_FOR_A_TEST' });
      assert.deepEqual([(await store().read(ref)).version, await numbers(ref)], [version, [5]]);
    });

    test('transactions that contend for a stream queue up: none loses an update', async () => {
      const ref = newStream();
      await commit(ref, undefined, { attempts: 0 });
      const outcomes = await Promise.allSettled(
        Array.from({ length: 6 }, () =>
          store().transact(ref, async ({ read, commit: write }) => {
            const { state = FRESH } = await read();
            write(state, { patch: patchOf({ attempts: state.attempts + 1 }) });
          }),
        ),
      );
      const committed = outcomes.filter(({ status }) => status === 'fulfilled').length;
      assert.ok(committed > 0);
      assert.equal((await stateOf(ref))?.attempts, committed);
    });

    test('nothing that a transaction has read changes before its commit, held messages included', async () => {
      // A transaction releases the stream if nothing is held; a commit holds only while the stream is not released.
      // Some servers let the loser wait for seconds: then fewer rounds are enough.
      const enough = clock.monotonic() + 4_000;
      for (let round = 0; round < 12 && (round === 0 || clock.monotonic() < enough); round += 1) {
        const ref = newStream();
        const version = await commit(ref, undefined, { readyAt: 1 });
        const results = await Promise.allSettled([
          store().transact(ref, async ({ read, held, commit: write }) => {
            const { state = FRESH } = await read();
            if ((await held(1, 1)).length === 0) write(state, { patch: patchOf({ readyAt: null }) });
          }),
          commit(ref, version, { held: 1 }, { create: [heldAs(2)] }),
        ]);
        assert.ok(results.some(({ status }) => status === 'fulfilled'));
        const isHeld = (await numbers(ref)).length === 1;
        const isReady = (await stateOf(ref))?.readyAt !== null;
        assert.ok(!isHeld || isReady, `round ${round}: held beside a stream that was released`);
      }
    });

    listContract(store);
  });
}
