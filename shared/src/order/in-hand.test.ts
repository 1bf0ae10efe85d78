/** Deliveries of a key that a process has in hand at once run in a row, without being stored. */
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { compose, type Handler, type Middleware } from '../handler.ts';
import { ack, deadLetter, type Outcome, retry } from '../outcome.ts';
import type { VirtualClock } from '../testing/virtual-clock.ts';
import { releasing } from './decisions.ts';
import { inOrder } from './in-order.ts';
import { freshKey } from './key-state.ts';
import { admittedOf } from './line.ts';
import { settling } from './settling.ts';
import { bench, CONSUMER, LEASE_MS, messageOf, kindOf, type Worker } from './testing/bench.ts';
import { contextFor } from './testing/plan.ts';

const numbers = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);
const deliverAll = ({ deliver }: Worker, all: readonly number[]): Promise<readonly Outcome[]> =>
  Promise.all(all.map((number) => deliver(number)));
const ranAs = (all: readonly number[]): readonly string[] => all.map((number) => `${number}:a`);
const slow =
  (clock: VirtualClock, ms: number): Handler =>
  async () => {
    await sleep(clock, ms);
    return ack();
  };
const dies = { kind: 'crash', when: 'after' } as const;

test('what arrives together runs in its order, and nothing of it is stored', async () => {
  const { worker, runs, state, heldNumbers, store } = bench();
  let held = 0;
  const { transact } = store;
  const counted = {
    ...store,
    transact: ((ref, base, query, decide) =>
      transact(ref, base, query, (...seen) => {
        const decision = decide(...seen);
        held += decision.create?.length ?? 0;
        return decision;
      })) as typeof transact,
  };
  Object.assign(store, counted);
  const outcomes = await deliverAll(worker(), [3, 1, 2, ...numbers(4, 40)]);
  assert.deepEqual(new Set(outcomes.map(kindOf)), new Set(['ack handled']));
  assert.deepEqual([runs, state().last, state().lease, state().run], [ranAs(numbers(1, 40)), 40, null, null]);
  assert.deepEqual([held, heldNumbers()], [0, []]);
});

test('what comes while a handler runs is next without being stored, or stored when it has waited a second', async () => {
  const { clock, worker, runs, heldNumbers } = bench();
  const busy = worker({ handler: slow(clock, 700) });
  const first = busy.deliver(1);
  await clock.advance(100);
  const second = busy.deliver(2);
  assert.equal(kindOf(await clock.until(first)), 'ack handled');
  await clock.advance(100);
  // Its turn is behind 2, which takes longer than a second waits in all.
  const third = busy.deliver(3);
  assert.equal(kindOf(await clock.until(second)), 'ack handled');
  assert.equal(kindOf(await clock.until(third)), 'ack handled');
  assert.deepEqual([runs, heldNumbers()], [ranAs([1, 2, 3]), []]);
  const slower = worker({ handler: slow(clock, 5_000) });
  const fourth = slower.deliver(4);
  await clock.advance(100);
  const fifth = slower.deliver(5);
  await clock.advance(1_100);
  assert.equal(kindOf(await fifth), 'ack held');
  assert.equal(kindOf(await clock.until(fourth)), 'ack handled');
  assert.deepEqual([runs, heldNumbers()], [ranAs([1, 2, 3, 4, 5]), []]);
});

test('a number behind a hole is stored, and runs when the hole is filled', async () => {
  const { worker, runs, state, heldNumbers } = bench();
  const some = worker();
  const outcomes = await deliverAll(some, [1, 2, 4, 5]);
  assert.deepEqual(outcomes.map(kindOf), ['ack handled', 'ack handled', 'ack held', 'ack held']);
  assert.deepEqual([state().last, heldNumbers(), state().waitingSince !== null], [2, [4, 5], true]);
  await deliverAll(some, [3, 6]);
  assert.deepEqual([runs, state().last, heldNumbers()], [ranAs(numbers(1, 6)), 6, []]);
});

test('V7: every number that was started keeps the content that it was started with, also after a crash', async () => {
  const { clock, worker, runs, state } = bench();
  // The third write is the one that would count 2 to 4 as done.
  void deliverAll(worker({ faults: { 'write 3': { kind: 'crash', when: 'before' } } }), numbers(1, 6));
  await clock.advance(1_000);
  assert.deepEqual([runs, state().last], [ranAs([1, 2, 3, 4]), 1]);
  const other = worker();
  for (const number of [2, 3, 4]) {
    const outcome = await other.deliver(number, { content: 'b' });
    assert.equal(kindOf(outcome), 'deadLetter SEQUENCE_CONFLICT');
    assert.equal(kindOf(await other.deliver(number)), 'ack held');
  }
  await clock.advance(LEASE_MS);
  await other.sweep();
  assert.deepEqual([runs, state().last, state().run], [ranAs([1, 2, 3, 4, 2, 3, 4]), 4, null]);
});

test('a failure in the middle: what ran is done, the failed one is tried again, the rest runs behind it', async () => {
  const { clock, worker, runs, state } = bench();
  let failures = 1;
  const some = worker({
    handler: async ({ attributes }) =>
      attributes.sequence === '3' && failures-- > 0 ? retry(new Error('once')) : ack(),
  });
  const outcomes = await deliverAll(some, numbers(1, 8));
  assert.deepEqual(outcomes.slice(0, 2).map(kindOf), ['ack handled', 'ack handled']);
  assert.deepEqual(new Set(outcomes.slice(2).map(kindOf)), new Set(['ack held']));
  assert.deepEqual([state().last, state().attempts, state().lease], [2, 1, null]);
  await clock.advance(1_000);
  await some.sweep();
  assert.deepEqual([runs, state().last], [ranAs([1, 2, 3, 3, 4, 5, 6, 7, 8]), 8]);
});

test('V6: a line that lost its lease is not acknowledged, and runs again in its order', async () => {
  const { clock, worker, runs, state } = bench();
  const stalls = worker({ faults: { 'write 3': { kind: 'none', beforeMs: LEASE_MS + 1_000 } } });
  const lost = deliverAll(stalls, numbers(1, 6));
  await clock.advance(LEASE_MS + 500);
  await worker().sweep();
  const outcomes = await clock.until(lost);
  assert.equal(kindOf(outcomes[0] as Outcome), 'ack handled');
  const line = outcomes.slice(1, 4).map(kindOf);
  assert.deepEqual(new Set(line), new Set(['retry LEASE_LOST']));
  assert.equal(state().last, 1);
  await deliverAll(worker(), numbers(2, 4));
  await worker().sweep();
  assert.deepEqual(runs.slice(4), ranAs([2, 3, 4, 5, 6]));
});

test('V2b: what is held came first, and nothing in hand passes for it', async () => {
  const { worker, runs, state, heldNumbers } = bench();
  const { deliver } = worker();
  assert.equal(kindOf(await deliver(4)), 'ack held');
  const all = [1, 2, 3, 4, 5, 6].map((number) => deliver(number, { content: number === 4 ? 'b' : 'a' }));
  const outcomes = (await Promise.all(all)).map(kindOf);
  assert.equal(outcomes[3], 'deadLetter SEQUENCE_CONFLICT');
  assert.deepEqual(
    outcomes.filter((kind) => !kind.startsWith('ack')),
    [outcomes[3]],
  );
  assert.deepEqual([runs, state().last, heldNumbers()], [ranAs(numbers(1, 6)), 6, []]);
});

test('V2: copies of a line that another process has stored meanwhile are removed with it', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  const busy = deliverAll(worker({ handler: slow(clock, 200) }), numbers(1, 5));
  await clock.advance(250);
  const copies = deliverAll(worker(), [2, 3, 4, 5]);
  assert.deepEqual(new Set((await clock.until(copies)).map(kindOf)), new Set(['ack held']));
  await clock.until(busy);
  assert.deepEqual([runs, state().last, heldNumbers(), state().lease], [ranAs(numbers(1, 5)), 5, [], null]);
});

test('a process that dies in a line loses nothing', async () => {
  const { clock, worker, runs, state } = bench();
  void deliverAll(worker({ faults: { 'write 3': dies } }), numbers(1, 8));
  await clock.advance(1_000);
  const other = worker();
  await clock.until(deliverAll(other, numbers(1, 8)));
  await clock.advance(LEASE_MS);
  await other.sweep();
  assert.equal(state().last, 8);
  const first = numbers(1, 8).map((number) => runs.indexOf(`${number}:a`));
  assert.deepEqual(
    first,
    first.toSorted((a, b) => a - b),
  );
});

test('V7: what a crashed line has started keeps its content also when its first number is run again by itself', async () => {
  const { clock, worker, runs, state } = bench();
  void deliverAll(worker({ faults: { 'write 3': { kind: 'crash', when: 'before' } } }), numbers(1, 6));
  await clock.advance(LEASE_MS + 1_000);
  const other = worker();
  // Nothing is stored, so the key is idle again, and 2 runs directly.
  await other.sweep();
  assert.equal(kindOf(await other.deliver(2)), 'ack handled');
  assert.equal(kindOf(await other.deliver(3, { content: 'b' })), 'deadLetter SEQUENCE_CONFLICT');
  assert.equal(kindOf(await other.deliver(4, { content: 'b' })), 'deadLetter SEQUENCE_CONFLICT');
  const rest = await Promise.all([3, 4].map((number) => other.deliver(number)));
  assert.deepEqual(new Set(rest.map(kindOf)), new Set(['ack handled']));
  assert.deepEqual([runs, state().last, state().run], [ranAs([1, 2, 3, 4, 2, 3, 4]), 4, null]);
});

test('a line is acknowledged when it is counted as done, and only its first delivery waits for the drain behind it', async () => {
  const { clock, worker, runs, state } = bench();
  await deliverAll(worker(), numbers(4, 8));
  const busy = worker({
    handler: async ({ attributes }) => {
      await sleep(clock, Number(attributes.sequence) > 3 ? 3_000 : 100);
      return ack();
    },
  });
  const [first, second, third] = numbers(1, 3).map((number) => busy.deliver(number)) as [
    Promise<Outcome>,
    Promise<Outcome>,
    Promise<Outcome>,
  ];
  let isSecondDone = false;
  void second.then(() => (isSecondDone = true));
  assert.equal(kindOf(await clock.until(first)), 'ack handled');
  assert.equal(kindOf(await clock.until(third)), 'ack handled');
  assert.deepEqual([runs.length <= 4, isSecondDone], [true, false]);
  assert.equal(kindOf(await clock.until(second)), 'ack handled');
  assert.deepEqual([runs, state().last], [ranAs(numbers(1, 8)), 8]);
});

test('each of a line runs in its own asynchronous context, and with the handler that it came to', async () => {
  const { clock, worker, store } = bench();
  const request = new AsyncLocalStorage<number>();
  const seen: string[] = [];
  const stages = ['x', 'y'].map((name) =>
    compose(
      async ({ attributes }) => {
        seen.push(`${name}${attributes.sequence}:${request.getStore()}`);
        return ack();
      },
      [inOrder(store, { clock })],
    ),
  );
  assert.equal(kindOf(await worker().deliver(1)), 'ack handled');
  const outcomes = numbers(2, 9).map((number) =>
    request.run(number, async () =>
      stages[number % 2]?.(messageOf(number), contextFor(clock, 60_000, CONSUMER)),
    ),
  );
  assert.deepEqual(
    (await Promise.all(outcomes)).map((outcome) => outcome && kindOf(outcome)),
    outcomes.map(() => 'ack handled'),
  );
  assert.deepEqual(
    seen,
    numbers(2, 9).map((number) => `${number % 2 === 0 ? 'x' : 'y'}${number}:${number}`),
  );
});

test('what ran before a failure stays done, also where the failure cannot be stored', async () => {
  const { clock, worker, state } = bench();
  const refused = { kind: 'refused' } as const;
  const some = worker({
    faults: { 'transact 2': refused, 'transact 3': refused, 'transact 4': refused },
    handler: async ({ attributes }) => (attributes.sequence === '3' ? retry(new Error('no')) : ack()),
  });
  const outcomes = await clock.until(deliverAll(some, numbers(1, 3)));
  assert.deepEqual(outcomes.map(kindOf), ['ack handled', 'ack handled', 'retry STORE_UNAVAILABLE']);
  assert.equal(state().last, 2);
});

test('a dead letter in the middle of a line whose lease is lost is left to whoever has the key', async () => {
  const letters: string[] = [];
  const deadLetters: Middleware = () => async (message) => {
    letters.push(String(message.attributes.sequence));
    return { kind: 'deadLetter', error: new Error('poison'), published: true };
  };
  const { clock, worker, state } = bench({ poison: 'skip', deadLetters });
  const handler: Handler = async ({ attributes }) =>
    attributes.sequence === '3' ? deadLetter(new Error('poison')) : ack();
  const stall = { kind: 'none', beforeMs: LEASE_MS + 1_000 } as const;
  const lost = deliverAll(worker({ handler, faults: { 'transact 1': stall } }), numbers(1, 4));
  await clock.advance(LEASE_MS + 500);
  await worker().sweep();
  const outcomes = (await clock.until(lost)).map(kindOf);
  assert.deepEqual(outcomes.slice(1, 3), ['retry LEASE_LOST', 'retry LEASE_LOST']);
  assert.deepEqual(letters, []);
  const again = (await clock.until(deliverAll(worker({ handler }), [2, 3]))).map(kindOf);
  assert.deepEqual([again[0]?.startsWith('ack'), letters, state().last], [true, ['3'], 4]);
});

test('one that hangs in a line keeps back nobody but itself', async () => {
  const { clock, worker, runs, state } = bench();
  let hangs = true;
  const handler: Handler = async ({ attributes }) => {
    if (attributes.sequence === '3' && hangs) return new Promise(() => undefined);
    return ack();
  };
  const all = deliverAll(worker({ handler }), numbers(1, 6));
  const outcomes = (await clock.until(all)).map(kindOf);
  assert.deepEqual(outcomes.slice(0, 3), ['ack handled', 'ack handled', 'retry LEASE_LOST']);
  assert.deepEqual(new Set(outcomes.slice(3)), new Set(['ack held']));
  hangs = false;
  await clock.advance(LEASE_MS);
  assert.equal(kindOf(await worker({ handler }).deliver(3)), 'ack held');
  await worker({ handler }).sweep();
  assert.deepEqual([runs, state().last], [ranAs([1, 2, 3, 3, 4, 5, 6]), 6]);
});

test('one whose time is over while it waits is not run, and its key waits for no pause', async () => {
  const { clock, store, state, heldNumbers } = bench();
  const runs: string[] = [];
  const chain = compose(
    async ({ attributes }) => {
      runs.push(`${attributes.sequence}:a`);
      await sleep(clock, 700);
      return ack();
    },
    [inOrder(store, { clock })],
  );
  const deliver = (number: number, limitMs: number): Promise<Outcome> =>
    chain(messageOf(number), contextFor(clock, limitMs, CONSUMER));
  const busy = deliver(1, 60_000);
  await clock.advance(10);
  const short = deliver(2, 300);
  assert.equal(kindOf(await clock.until(busy)), 'ack handled');
  assert.equal((await clock.until(short)).kind, 'retry');
  assert.deepEqual([state().last, state().lease, state().readyAt, heldNumbers()], [1, null, null, []]);
  assert.equal(kindOf(await clock.until(deliver(2, 60_000))), 'ack handled');
  assert.deepEqual(runs, ranAs([1, 2]));
});

test('a line is of one epoch: the first that the key sees, also where a line brings it', async () => {
  const { clock, worker, runs, state } = bench();
  const busy = worker({ handler: slow(clock, 100) });
  const of = (number: number, epoch?: string): Promise<Outcome> =>
    busy.deliver(number, epoch === undefined ? {} : { attributes: { sequenceEpoch: epoch } });
  const all = [of(1), of(2), of(3, 'a'), of(4, 'b')];
  const outcomes = (await clock.until(Promise.all(all))).map(kindOf);
  assert.deepEqual(outcomes, [...outcomes.slice(0, 3), 'deadLetter EPOCH_MISMATCH']);
  assert.deepEqual([runs, state().last, state().epoch], [ranAs([1, 2, 3]), 3, 'a']);
  const next = [of(4), of(5, 'b'), of(5, 'a'), of(6, 'a')];
  const kinds = (await clock.until(Promise.all(next))).map(kindOf);
  assert.equal(kinds[1], 'deadLetter EPOCH_MISMATCH');
  assert.deepEqual([runs, state().last], [ranAs(numbers(1, 6)), 6]);
});

test('a key that is busy for longer than a lease is nobody else’s: each line renews it', async () => {
  const { clock, worker, contexts, state } = bench();
  const [busy, other] = [worker({ handler: slow(clock, 600) }), worker()];
  const last = Math.ceil((2 * LEASE_MS) / 600);
  const outcomes: Promise<Outcome>[] = [];
  let [taken, readyAt] = [0, 0];
  for (const number of numbers(1, last)) {
    outcomes.push(busy.deliver(number));
    await clock.advance(number === 1 ? 100 : 600);
    taken += (await other.sweep()).taken;
    if (number < last) assert.ok((state().readyAt ?? 0) >= readyAt, 'it is due earlier than before');
    readyAt = state().readyAt ?? readyAt;
  }
  const kinds = (await clock.until(Promise.all(outcomes))).map(kindOf);
  assert.deepEqual([new Set(kinds), taken, state().last], [new Set(['ack handled']), 0, last]);
  assert.equal(new Set(contexts.map(({ fencingToken }) => fencingToken)).size, 1, 'it was let go of');
});

test('a key that was kept for a delivery that has gone meanwhile is drained, and let go of', async () => {
  const { clock, worker, runs, state } = bench();
  const { deliver } = worker({ faults: { 'write 2': { kind: 'none', afterMs: 1_500 } } });
  const outcomes = [1, 2].map((number) => deliver(number));
  assert.deepEqual((await clock.until(Promise.all(outcomes))).map(kindOf), ['ack handled', 'ack held']);
  assert.deepEqual([runs, state().last, state().lease], [ranAs([1, 2]), 2, null]);
  assert.equal(kindOf(await deliver(3)), 'ack handled');
});

test('a held message with other content under a number that is done is kept, and said', () => {
  const state = { ...freshKey(1), last: 1, lease: { owner: 'me', untilMs: 9 } };
  const held = [{ number: 2, hash: 'b', source: 'sub', message: new Uint8Array() }];
  const decide = settling('me', { from: 2, hashes: ['a', 'c'] }, LEASE_MS);
  const { result, remove } = decide(state, held, 1);
  assert.ok(result.kind === 'done');
  assert.deepEqual([result.foreign, result.removed, remove, result.upTo], [[2], [], undefined, 3]);
});

test('a line runs behind no head that has failed or stands still', () => {
  const line = [{ key: 'k', number: 2, hash: 'a', epoch: undefined }];
  const state = { ...freshKey(1), last: 1, lease: { owner: 'me', untilMs: 9 } };
  assert.deepEqual(admittedOf(state, line, undefined), line);
  assert.deepEqual(admittedOf({ ...state, attempts: 1 }, line, undefined), []);
  const halted = { code: 'X', text: 'x', atMs: 1 };
  assert.deepEqual(admittedOf({ ...state, halted }, line, undefined), []);
});

test('a key that a drain leaves to a line is kept for it, with the identities of all of it', () => {
  const line = [2, 3].map((number) => ({ key: 'k', number, hash: `h${number}`, epoch: 'e' }));
  const state = { ...freshKey(1), last: 1, lease: { owner: 'me', untilMs: 9 } };
  const { result, patch } = releasing('me', LEASE_MS, () => line)(state, [], 5);
  assert.deepEqual(result, { kind: 'line', admitted: line, isEmpty: true });
  assert.deepEqual(patch, {
    lease: { owner: 'me', lengthMs: LEASE_MS },
    readyAt: 5 + LEASE_MS,
    run: { number: 2, hash: 'h2', behind: 'h3' },
    epoch: 'e',
    waitingSince: null,
    gapAt: null,
    repairedAt: null,
  });
  const ahead = { number: 9, hash: 'h9', source: 'sub', message: new Uint8Array() };
  const behind = releasing('me', LEASE_MS, () => line)({ ...state, waitingSince: 3, gapAt: 1 }, [ahead], 5);
  assert.deepEqual(behind.result, { kind: 'line', admitted: line, isEmpty: false });
  assert.equal('waitingSince' in (behind.patch ?? {}), false, 'it shows that something is held');
});
