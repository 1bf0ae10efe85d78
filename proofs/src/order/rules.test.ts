/**
 * The rules of one worker that failures have added, one test each, under the numbers that docs/protocols.md gives them
 * (P1 to P9, P13, P15).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { inProgressElsewhere, TransientError } from '../../../shared/src/errors.ts';
import type { Handler } from '../../../shared/src/handler.ts';
import { ack, type Outcome, retry } from '../../../shared/src/outcome.ts';
import { memoryPayloads } from '../../../shared/src/payload/memory.ts';
import { streamPolicy } from '../../../shared/src/order/options.ts';
import { bench, type Bench, CONSUMER, kindOf, LEASE_MS, REF } from './bench.ts';
import type { Store } from './faulty-store.ts';
import { contextFor } from './schedule.ts';
import { streamWorkers } from '../../../shared/src/order/in-order.ts';

const LARGE = { content: 'x'.repeat(2_000) };

test('P1: a number that fails while a copy of it waits is held once', async () => {
  const { clock, worker, state, heldNumbers } = bench();
  const { deliver } = worker({ handler: failing('1', 1, () => retry(new Error('not yet'))) });
  const both = [deliver(1), deliver(1)];
  const kinds = (await Promise.all(both.map((one) => clock.until(one)))).map(kindOf);
  assert.deepEqual(kinds, ['ack held', 'ack held']);
  assert.deepEqual([heldNumbers(), state().held, state().attempts], [[1], 1, 1]);
});

test('P2: of two contents of one number the second is refused only when the first is durable', async () => {
  const { clock, worker, runs, heldNumbers } = bench();
  // Its commit comes late: meanwhile another process holds what this one would have refused.
  const late = worker({ faults: { 'commit 1': { kind: 'none', beforeMs: 5_000 } } });
  const [first, second] = [late.deliver(2), late.deliver(2, { content: 'b' })];
  await clock.advance(1_000);
  assert.equal(kindOf(await worker().deliver(2, { content: 'b' })), 'ack held');
  assert.equal(kindOf(await clock.until(first)), 'deadLetter SEQUENCE_CONFLICT');
  assert.equal(kindOf(await clock.until(second)), 'ack held');
  assert.deepEqual(heldNumbers(), [2]);
  await worker().deliver(1);
  assert.deepEqual(runs, ['1:a', '2:b']);
});

test('P2: in one commit the first content is held or started, and the second is a conflict', async () => {
  for (const number of [1, 2]) {
    const { clock, worker } = bench();
    const { deliver } = worker();
    const both = [deliver(number), deliver(number, { content: 'b' })];
    const kinds = (await Promise.all(both.map((one) => clock.until(one)))).map(kindOf);
    assert.deepEqual(kinds, [number === 1 ? 'ack handled' : 'ack held', 'deadLetter SEQUENCE_CONFLICT']);
  }
});

test('P2: of two epochs in one mailbox the second is refused only when the first is durable', async () => {
  const { clock, worker, state } = bench();
  const { deliver } = worker();
  const epoch = (sequenceEpoch: string) => ({ attributes: { sequenceEpoch } });
  const both = [deliver(2, epoch('one')), deliver(3, epoch('two'))];
  const kinds = (await Promise.all(both.map((each) => clock.until(each)))).map(kindOf);
  assert.deepEqual(kinds, ['ack held', 'deadLetter EPOCH_MISMATCH']);
  assert.equal(state().epoch, 'one');
});

test('P3: the content of a large message lives as long as a held copy that refers to it', async () => {
  const made = large();
  const { clock, worker, runs, state, payloads } = made;
  // Encoded to be held, then judged again, and run as a delivery that outlives its lease.
  const slow = worker({
    faults: { 'commit 1': { kind: 'none', beforeMs: 2_000 } },
    handler: async () => {
      await sleep(clock, LEASE_MS + 900);
      return ack();
    },
  });
  const outlives = slow.deliver(2, LARGE);
  await clock.advance(100);
  await worker().deliver(1);
  await clock.advance(3_000);
  const other = worker({ handler: failing('2', 1, () => retry(new Error('once'))) });
  assert.equal(kindOf(await other.deliver(2, LARGE)), 'ack held');
  await clock.advance(LEASE_MS - 900);
  await other.sweep();
  assert.equal(state().attempts > 0, true, 'taken over, and failed once');
  assert.match(kindOf(await clock.until(outlives)), /^retry|^ack held/);
  await clock.advance(60_000);
  await other.sweep();
  assert.deepEqual([state().blocked, state().last, runs.at(-1)?.slice(0, 2)], [null, 2, '2:']);
  assert.deepEqual([...payloads.stored()], [], 'and no longer');
});

test('P3: a batch of large messages that loses its lease discards nothing', async () => {
  const made = large();
  const { clock, worker, runs, state } = made;
  const stalls = worker({ faults: { 'commit 3': { kind: 'none', beforeMs: 2 * LEASE_MS } } });
  await stalls.deliver(2, LARGE);
  const lost = stalls.deliver(1);
  await clock.advance(LEASE_MS + 1_000);
  const { sweep, deliver } = worker();
  await sweep();
  await clock.until(lost);
  await deliver(1);
  await sweep();
  assert.deepEqual([state().last, state().blocked, runs.length], [2, null, 4]);
  assert.deepEqual([...made.payloads.stored()], []);
});

test('P4: a visit without time for the next number writes nothing, and counts no attempt', async () => {
  const { clock, worker, store, state } = bench();
  void worker({ faults: { 'commit 1': { kind: 'crash', when: 'after' } } }).deliver(1);
  await clock.advance(1_000);
  await worker().deliver(1);
  await clock.advance(LEASE_MS);
  const before = state();
  const { visit } = streamWorkers(streamPolicy(store, { clock }));
  const handler: Handler = async () => ack();
  const visited = await visit(REF, contextFor(clock, 0, CONSUMER), handler);
  assert.deepEqual([visited.taken, state()], [false, before]);
});

test('P5: a takeover that finds nothing to run is one write, and counts the attempt', async () => {
  const { clock, worker, state } = bench();
  void worker({ faults: { 'commit 1': { kind: 'crash', when: 'after' } } }).deliver(1);
  await clock.advance(LEASE_MS + 1_000);
  let commits = 0;
  const counted = (store: Store): Store => ({
    ...store,
    commit: (...args) => {
      commits += 1;
      return store.commit(...args);
    },
  });
  await worker({ wrap: counted }).sweep();
  assert.deepEqual([commits, state().lease, state().attempts, state().suspectsTo], [1, null, 1, 1]);
  assert.deepEqual([state().readyAt, state().waitingSince], [null, null]);
});

test('P6: an answer without a write never comes from memory', async () => {
  const { worker, store, state, runs } = bench();
  const { deliver } = worker();
  for (const number of [1, 2, 3]) await deliver(number);
  // Restored from a backup in which nothing had run yet.
  const { version } = await store.read(REF);
  const patch = { commit: 'restored', last: 0, recentHashes: [], run: null };
  await store.commit(REF, { version, state: state() }, { patch });
  assert.equal(kindOf(await deliver(2, { content: 'b' })), 'ack held', 'no conflict with what is gone');
  assert.equal(kindOf(await deliver(1)), 'ack handled', 'not stale');
  assert.deepEqual(runs.slice(3), ['1:a', '2:b']);
});

test('P6: a message that was held before the document was restored from an earlier time does not count as held', async () => {
  const { worker, store, state, heldNumbers } = bench();
  const { deliver } = worker();
  for (const number of [1, 3]) await deliver(number);
  const { version } = await store.read(REF);
  const [three] = await store.held(REF, 3, 1);
  assert.ok(three !== undefined);
  // At that time nothing had run, and 2 was held in place of 3.
  const patch = { commit: 'restored', last: 0, recentHashes: [], run: null, gapAt: 0 };
  const change = { patch, create: [{ ...three, number: 2 }], remove: [3] };
  await store.commit(REF, { version, state: state() }, change);
  assert.equal(kindOf(await deliver(3)), 'ack held');
  assert.deepEqual(heldNumbers(), [2, 3]);
});

test('P6: messages beyond the document’s count do not count as held either', async () => {
  const { worker, store, state, heldNumbers } = bench();
  const { deliver } = worker();
  for (const number of [1, 3]) await deliver(number);
  const { version } = await store.read(REF);
  const patch = { commit: 'restored', held: 0, waitingSince: null, gapAt: null };
  await store.commit(REF, { version, state: state() }, { patch, remove: [3] });
  assert.equal(kindOf(await deliver(3)), 'ack held');
  assert.deepEqual(heldNumbers(), [3]);
});

test('P6: a document that was restored with as much done and held as is remembered may hold other messages', async () => {
  const { worker, store, state, heldNumbers, runs } = bench();
  const { deliver } = worker();
  for (const number of [1, 3, 5]) await deliver(number);
  const { version } = await store.read(REF);
  const held = await store.held(REF, 2, 2);
  // The same `last` and `held`: only what is held differs.
  const create = held.map((one) => ({ ...one, number: one.number + 1 }));
  const change = { patch: { commit: 'restored' }, create, remove: [3, 5] };
  await store.commit(REF, { version, state: state() }, change);
  assert.equal(kindOf(await deliver(3)), 'ack held', 'held again, and not taken for held');
  assert.deepEqual(heldNumbers(), [3, 4, 6]);
  assert.equal(kindOf(await deliver(2)), 'ack handled');
  assert.deepEqual([runs.length, state().last, state().held], [4, 4, 1]);
});

test('W3: numbers that were started together keep each its own identity, also when the first of them starts again', async () => {
  const { worker, runs } = bench({ maxHeldBytes: 1 });
  const { deliver } = worker({ handler: failing('1', 1, () => retry(new Error('once'))) });
  const contents = [1, 2, 3].map((number) => ({ number, content: `content of ${number}` }));
  await Promise.all(contents.map(({ number, content }) => deliver(number, { content })));
  const kinds: string[] = [];
  for (const { number, content } of contents) kinds.push(kindOf(await deliver(number, { content })));
  assert.deepEqual(kinds, ['ack handled', 'ack handled', 'ack handled']);
  assert.equal(runs.length, 4);
});

test('P7: a lease whose confirmation comes after its end is renewed before anything starts', async () => {
  const { clock, worker, contexts, state, runs } = bench();
  const ends: number[] = [];
  const late = worker({
    faults: { 'commit 1': { kind: 'none', afterMs: LEASE_MS } },
    handler: async () => {
      ends.push((state().lease?.untilMs ?? 0) - clock.now() + clock.monotonic());
      return ack();
    },
  });
  assert.equal(kindOf(await clock.until(late.deliver(1))), 'ack handled');
  assert.deepEqual([runs, state().attempts, state().last], [['1:a'], 0, 1]);
  assert.ok((contexts[0]?.deadline ?? 0) > LEASE_MS, 'under the renewed lease');
  assert.ok((contexts[0]?.deadline ?? Infinity) <= (ends[0] ?? 0), 'and no longer than the store says');
});

test('a lease whose confirmation is slow is counted from when it was sent', async () => {
  const { clock, worker, contexts } = bench();
  const slow = worker({ faults: { 'commit 1': { kind: 'none', afterMs: 5_000 } } });
  assert.equal(kindOf(await clock.until(slow.deliver(1))), 'ack handled');
  assert.ok((contexts[0]?.deadline ?? Infinity) <= LEASE_MS, `${contexts[0]?.deadline} ms`);
});

test('held messages run in half of the time of the delivery that is their host, so that it can be answered', async () => {
  const { clock, worker, runs } = bench();
  const { deliver } = worker({
    handler: async () => {
      await sleep(clock, 1_000);
      return ack();
    },
  });
  for (const number of [2, 3, 4, 5, 6]) await deliver(number);
  assert.equal(kindOf(await clock.until(deliver(1, { limitMs: 4_000 }))), 'ack handled');
  assert.deepEqual([clock.monotonic(), runs], [2_000, ['1:a', '2:a']]);
});

test('a run that lost its lease, and whose number an operator has skipped meanwhile, is no ack', async () => {
  const { clock, worker, state } = bench();
  const lost = worker({ faults: { 'commit 2': { kind: 'none', beforeMs: LEASE_MS + 3_000 } } }).deliver(1);
  await clock.advance(LEASE_MS + 1_000);
  const { sweep, streams, deliver } = worker();
  await sweep();
  assert.equal(await streams.skip(REF, 1), true);
  assert.equal(kindOf(await clock.until(lost)), 'retry LEASE_LOST');
  assert.equal(kindOf(await deliver(1)), 'deadLetter LATE_ARRIVAL');
  assert.equal(state().last, 1);
});

test('P8: held messages that cannot be read refuse the delivery, and nothing is decided without them', async () => {
  for (const code of ['UNREADABLE_STATE', 'STORE_UNAVAILABLE']) {
    const { clock, worker, runs, state } = bench();
    await worker().deliver(2);
    const broken = (store: Store): Store => ({
      ...store,
      held: () => Promise.reject(new TransientError(code, 'not readable')),
    });
    const outcome = await clock.until(worker({ wrap: broken }).deliver(1));
    assert.equal(kindOf(outcome), `retry ${code}`);
    assert.deepEqual([runs, state().last], [[], 0]);
    assert.equal(kindOf(await worker().deliver(1)), 'ack handled');
    assert.deepEqual(runs, ['1:a', '2:a']);
  }
});

test('P9: a batch that begins with a held message runs in the time of a delivery further back in the batch', async () => {
  const { clock, worker, runs, contexts, state } = bench();
  await worker({ handler: failing('1', 1, () => retry(inProgressElsewhere('busy'))) }).deliver(1);
  await clock.advance(1_500);
  assert.equal(kindOf(await worker().deliver(2)), 'ack handled');
  assert.deepEqual([runs, state().last, contexts.length], [['1:a', '1:a', '2:a'], 2, 3]);
});

test('P13: a batch of held messages goes on beyond the end of a page', async () => {
  const { clock, worker, runs } = bench({ pageSize: 8 });
  const { deliver } = worker();
  for (let number = 120; number > 1; number -= 1) await deliver(number);
  const calls = { commit: 0, held: 0 };
  const counted = (store: Store): Store => ({
    ...store,
    commit: (...args) => {
      calls.commit += 1;
      return store.commit(...args);
    },
    held: (...args) => {
      calls.held += 1;
      return store.held(...args);
    },
  });
  assert.equal(kindOf(await clock.until(worker({ wrap: counted }).deliver(1))), 'ack handled');
  assert.equal(runs.length, 120);
  assert.equal(calls.commit, 4, 'three batches of at most 50, each settled by the start of the next');
  assert.ok(calls.held <= 18, `${calls.held} pages of 8`);
});

test('P15: a document that counts other than what is held is refused as unreadable', async () => {
  for (const held of [1, 3]) {
    const { clock, worker, store, state, runs } = bench();
    for (const number of [2, 3]) await worker().deliver(number);
    const { version } = await store.read(REF);
    await store.commit(REF, { version, state: state() }, { patch: { commit: 'by hand', held } });
    assert.equal(kindOf(await clock.until(worker().deliver(1))), 'retry UNREADABLE_STATE');
    assert.deepEqual(runs, []);
  }
});

test('P15: a message that is held although the document was deleted keeps its number from another content', async () => {
  const { clock, worker, store, runs } = bench();
  await worker().deliver(2);
  const deleted = (plain: Store): Store => ({
    ...plain,
    read: async (ref) => ({ ...(await plain.read(ref)), state: undefined, version: undefined }),
    commit: async (_ref, _seen, { create = [] }) =>
      create.some(({ number }) => number === 2) ? undefined : Promise.reject(new Error('not reached')),
    transact: async (ref, work) => {
      const { result } = await store.transact(ref, (inside) =>
        work({
          read: async () => ({ ...(await inside.read()), state: undefined, version: undefined }),
          held: inside.held,
          commit: () => undefined,
        }),
      );
      return { applied: false, result };
    },
  });
  const outcome = await clock.until(worker({ wrap: deleted }).deliver(2, { content: 'b' }));
  assert.equal(kindOf(outcome), 'retry UNREADABLE_STATE');
  assert.deepEqual(runs, []);
});

/** Fails for one number, as often as `times` says. */
function failing(number: string, times: number, outcome: () => Outcome): Handler {
  let left = times;
  return async (message) => (message.attributes.sequence === number && left-- > 0 ? outcome() : ack());
}

/** A bench whose large messages go to a payload store, which tells what is stored in it and not discarded. */
function large(): Bench & Readonly<{ payloads: Readonly<{ stored(): ReadonlySet<string> }> }> {
  const stored = new Set<string>();
  let payloads: ReturnType<typeof memoryPayloads> | undefined;
  const made = bench({
    maxHeldBytes: 1_000,
    payloads: {
      async put(...args) {
        const ref = await plain().put(...args);
        stored.add(ref.id);
        return ref;
      },
      get: (ref) => plain().get(ref),
      async done(ref) {
        stored.delete(ref.id);
        await plain().done(ref);
      },
      sweep: (signal) => plain().sweep(signal),
    },
  });
  const plain = () => (payloads ??= memoryPayloads({ clock: made.clock }));
  return { ...made, payloads: { stored: () => stored } };
}
