import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { storeUnavailable, TransientError } from '../errors.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { decidedCommit, type Decided, type Looked } from './decided-commit.ts';
import { memoryStreams } from './memory.ts';
import type { StreamStore } from './stream-store.ts';
import { heldAs, made, patchOf } from '../testing/stream-samples.ts';

const counting = ({ state }: Looked): Decided<number> => ({
  result: state.attempts + 1,
  fields: { attempts: state.attempts + 1 },
});

function setUp() {
  const clock = virtualClock();
  const store = memoryStreams({ clock });
  let ids = 0;
  return { store, clock, newId: () => `id ${(ids += 1)}` };
}

test('a stream that no message has come of is left alone', async () => {
  const ports = setUp();
  const ref = { consumer: 'c', source: 's', key: 'unknown' };
  assert.equal(await decidedCommit(ports, ref, counting), undefined);
  assert.equal(ports.store.stateOf(ref), undefined);
});

test('it decides by the first message that is held behind `last`, and writes what it decides', async () => {
  const ports = setUp();
  const ref = await made(ports.store, { last: 3 }, [5, 7]);
  const result = await decidedCommit(ports, ref, ({ state, first }) => ({
    result: [state.last, first?.number],
    fields: { last: 5, held: 1 },
    remove: [5],
  }));
  assert.deepEqual([result, ports.store.heldNumbers(ref)], [[3, 5], [7]]);
  const { version } = await ports.store.read(ref);
  assert.equal(await decidedCommit(ports, ref, () => ({ result: 'nothing' })), 'nothing');
  assert.equal((await ports.store.read(ref)).version, version);
});

test('a commit that is refused is decided again, and behind three refusals in a transaction', async () => {
  const { store, clock, newId } = setUp();
  const ref = await made(store);
  let refusals = 0;
  const crowded: StreamStore = {
    ...store,
    async commit(to, seen, change) {
      // Another process is always a little faster.
      const { version, state } = await store.read(to);
      if (state !== undefined)
        await store.commit(to, { version, state }, { patch: patchOf({ suspectsTo: 1 }) });
      refusals += 1;
      return store.commit(to, seen, change);
    },
  };
  assert.equal(await decidedCommit({ store: { ...store, ...crowded }, clock, newId }, ref, counting), 1);
  assert.deepEqual([refusals, store.stateOf(ref)?.attempts], [3, 1]);
});

test('W11: a commit that was applied and whose reply was lost is not applied again', async () => {
  for (const covered of [false, true]) {
    const { store, clock, newId } = setUp();
    const ref = await made(store, { last: 1 }, [4]);
    let lost = 0;
    const losing: StreamStore = {
      ...store,
      async commit(to, seen, change) {
        await store.commit(to, seen, change);
        lost += 1;
        if (covered) {
          const { version, state } = await store.read(to);
          if (state !== undefined) await store.commit(to, { version, state }, { patch: patchOf({}) });
        }
        throw storeUnavailable('the reply was lost');
      },
    };
    const decide = ({ state }: Looked): Decided<string> =>
      state.last === 4
        ? { result: 'done before' }
        : { result: 'done', fields: { last: 4, held: 0 }, remove: [4] };
    const result = await decidedCommit({ store: { ...store, ...losing }, clock, newId }, ref, decide);
    assert.deepEqual([result, lost], [covered ? 'done before' : 'done', 1]);
    assert.deepEqual([store.stateOf(ref)?.last, store.heldNumbers(ref)], [4, []]);
  }
});

test('what cannot be read is not tried again, and a store that stays silent ends in its error', async () => {
  const { store, clock, newId } = setUp();
  const ref = await made(store);
  let [reads, commits] = [0, 0];
  const unreadable: StreamStore = {
    ...store,
    async read() {
      reads += 1;
      throw new TransientError('UNREADABLE_STATE', 'a later version');
    },
  };
  const ports = { store: { ...store, ...unreadable }, clock, newId };
  await assert.rejects(decidedCommit(ports, ref, counting), { code: 'UNREADABLE_STATE' });
  assert.equal(reads, 1);
  const silent = async (): Promise<never> => {
    commits += 1;
    throw storeUnavailable('no answer');
  };
  const down = { store: { ...store, commit: silent, transact: silent }, clock, newId };
  await assert.rejects(decidedCommit(down, ref, counting), { code: 'STORE_UNAVAILABLE' });
  assert.ok(commits > 1 && commits < 10);
  const slow = async (): Promise<never> => {
    await sleep(clock, 10_000);
    return silent();
  };
  commits = 0;
  const hanging = { store: { ...store, commit: slow, transact: slow }, clock, newId };
  await assert.rejects(clock.until(decidedCommit(hanging, ref, counting)), { code: 'STORE_UNAVAILABLE' });
  assert.equal(commits, 2, 'other streams are waiting');
});

test('a message that is held while it decides is seen before anything is written', async () => {
  const { store, clock, newId } = setUp();
  const ref = await made(store, {}, [5]);
  const late: StreamStore = {
    ...store,
    async held(to, from, limit) {
      const answer = await store.held(to, from, limit);
      const { version, state } = await store.read(to);
      if (state?.held === 1)
        await store.commit(to, { version, state }, { patch: patchOf({ held: 2 }), create: [heldAs(3)] });
      return answer;
    },
  };
  const decide = ({ first }: Looked): Decided<number | undefined> => ({
    result: first?.number,
    fields: { attempts: 1 },
  });
  assert.equal(await decidedCommit({ store: { ...store, ...late }, clock, newId }, ref, decide), 3);
});
