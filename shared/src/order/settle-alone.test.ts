/** Where nothing is held for a key, a lone write counts its numbers as done; where something is, that write is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { compose, type Handler } from '../handler.ts';
import { ack, type Outcome, retry } from '../outcome.ts';
import { inOrder } from './in-order.ts';
import { bench, CONSUMER, messageOf, kindOf } from './testing/bench.ts';
import { contextFor } from './testing/plan.ts';

type Call = 'read' | 'write' | 'transact' | 'held';

/** A worker whose calls of the store are recorded. `takesMs`: as long as its handler goes on. */
function recorded(takesMs = 0) {
  const { clock, store, state, heldNumbers, worker } = bench();
  const calls: Call[] = [];
  const noted =
    <Arguments extends unknown[], Result>(name: Call, method: (...args: Arguments) => Result) =>
    (...args: Arguments): Result => (calls.push(name), method(...args));
  const seen = {
    ...store,
    read: noted('read', store.read),
    write: noted('write', store.write),
    transact: ((...args) => (calls.push('transact'), store.transact(...args))) as typeof store.transact,
    held: noted('held', store.held),
  };
  const handler: Handler = async () => {
    if (takesMs > 0) await sleep(clock, takesMs);
    return ack();
  };
  const chain = compose(handler, [inOrder(seen, { clock })]);
  const deliver = (number: number): Promise<Outcome> =>
    chain(messageOf(number), contextFor(clock, 60_000, CONSUMER));
  return { clock, calls, state, heldNumbers, other: worker(), deliver };
}

test('a message in its turn is a read and two writes', async () => {
  const { calls, deliver, state } = recorded();
  for (const number of [1, 2, 3]) assert.equal(kindOf(await deliver(number)), 'ack handled');
  assert.deepEqual(calls.splice(0, 3), ['read', 'write', 'write']);
  assert.deepEqual(calls.splice(0, 3), ['read', 'write', 'write']);
  assert.deepEqual([state().last, state().lease, state().readyAt, state().run], [3, null, null, null]);
});

test('what arrives together is a read, and a write for each row', async () => {
  const { calls, deliver, state } = recorded();
  await Promise.all(Array.from({ length: 40 }, (_, index) => deliver(index + 1)));
  assert.equal(state().last, 40);
  assert.deepEqual(new Set(calls.slice(1)), new Set(['write']));
  assert.ok(calls.length <= 9, `${calls.length} calls`);
});

test('behind a hole it is a transaction, and a lone write again once the key was let go of without one', async () => {
  const { calls, deliver, state } = recorded();
  await deliver(3);
  calls.length = 0;
  assert.equal(kindOf(await deliver(1)), 'ack handled');
  assert.deepEqual(calls, ['read', 'write', 'transact']);
  await deliver(2);
  assert.deepEqual([state().last, state().waitingSince], [3, null]);
  calls.length = 0;
  await deliver(4);
  assert.deepEqual(calls, ['read', 'write', 'write']);
});

for (const [what, number, content] of [
  ['a copy of what runs', 1, 'a'],
  ['other content under what runs', 1, 'b'],
  ['what comes next', 2, 'a'],
  ['what is ahead', 3, 'a'],
] as const) {
  test(`${what}, held by another process meanwhile, is found`, async () => {
    const { clock, calls, deliver, other, state, heldNumbers } = recorded(3_000);
    const running = deliver(1);
    await clock.advance(100);
    const held = kindOf(await other.deliver(number, { content }));
    assert.equal(held, content === 'b' ? 'deadLetter SEQUENCE_CONFLICT' : 'ack held');
    assert.equal(kindOf(await clock.until(running)), 'ack handled');
    // Refused, unless the other content was never held.
    assert.equal(calls.includes('transact'), content === 'a');
    const [last, waits] = { 1: [1, []], 2: [2, []], 3: [1, [3]] }[number] as [number, number[]];
    assert.deepEqual([state().last, heldNumbers(), state().lease], [last, waits, null]);
    assert.equal(
      state().waitingSince !== null,
      waits.length > 0,
      'the gap is shown, and only where there is one',
    );
  });
}

test('a line that a transaction has let begin goes on by lone writes', async () => {
  const { clock, calls, deliver, other, state } = recorded(100);
  const first = deliver(1);
  await clock.advance(50);
  // A copy, so that the first is settled by a transaction.
  assert.equal(kindOf(await other.deliver(1)), 'ack held');
  const rest = [2, 3, 4, 5, 6].map((number) => deliver(number));
  await clock.until(Promise.all([first, ...rest]));
  assert.equal(state().last, 6);
  assert.deepEqual(
    calls.slice(calls.indexOf('transact'))[1],
    'read',
    'the version is read beside the handlers',
  );
  assert.equal(calls.filter((call) => call === 'transact').length, 1);
});

test('a lone write whose outcome is unknown is looked for, whatever became of it', async () => {
  for (const kind of ['refused', 'reply lost', 'repeated'] as const) {
    const { clock, worker, runs, state, heldNumbers } = bench();
    const { deliver } = worker({ faults: { 'write 2': { kind } } });
    assert.equal(kindOf(await clock.until(deliver(1))), 'ack handled', kind);
    assert.equal(kindOf(await clock.until(deliver(2))), 'ack handled', kind);
    assert.deepEqual([runs, state().last, state().lease, heldNumbers()], [['1:a', '2:a'], 2, null, []], kind);
  }
  const { clock, worker, runs, state } = bench();
  const { deliver } = worker({ faults: { 'write 2': { kind: 'delayed', byMs: 5_000 } } });
  assert.equal(kindOf(await clock.until(deliver(1))), 'ack handled');
  assert.equal(kindOf(await clock.until(deliver(2))), 'ack handled');
  await clock.advance(10_000);
  assert.deepEqual([runs, state().last, state().lease], [['1:a', '2:a'], 2, null], 'it came too late');
});

test('V7: what takes the key again behind a lone write keeps its identity, also after a crash; it is due when its lease ends', async () => {
  const { clock, worker, runs, state } = bench();
  const faults = {
    'write 2': { kind: 'none', beforeMs: 200 },
    'write 4': { kind: 'crash', when: 'before' },
  } as const;
  const { deliver } = worker({ faults });
  void deliver(1);
  await clock.advance(100);
  // The key is about to be let go of.
  for (const number of [2, 3]) void deliver(number);
  await clock.advance(500);
  assert.deepEqual([runs, state().last], [['1:a', '2:a', '3:a'], 1]);
  assert.equal(state().readyAt, state().lease?.untilMs);
  assert.equal(kindOf(await worker().deliver(2, { content: 'b' })), 'deadLetter SEQUENCE_CONFLICT');
});

test('a key that is kept for a row is due when the lease of the row ends', async () => {
  const { clock, worker, state } = bench();
  const handler: Handler = async () => {
    await sleep(clock, 100);
    return ack();
  };
  const { deliver } = worker({ handler });
  const outcomes = [1, 2, 3].map((number) => deliver(number));
  await clock.advance(150);
  assert.deepEqual([state().last, state().readyAt], [1, state().lease?.untilMs]);
  await clock.until(Promise.all(outcomes));
});

test('what was held behind a head that had failed shows no gap, and is looked for all the same', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  let failures = 1;
  const handler: Handler = async ({ attributes }) => {
    if (attributes.sequence === '1' && failures-- > 0) return retry(new Error('once'));
    await sleep(clock, 5);
    return ack();
  };
  const { deliver, sweep } = worker({ handler });
  assert.equal(kindOf(await deliver(1)), 'ack held');
  assert.equal(kindOf(await deliver(62)), 'ack held');
  assert.equal(state().waitingSince, null);
  await clock.advance(1_000);
  const swept = sweep();
  await clock.advance(2);
  // Beside a drain the first of a stream are stored; when twenty have come in their order the rest wait in hand.
  const rows = Array.from({ length: 59 }, (_, index) => deliver(index + 2));
  const reasons = (await clock.until(Promise.all([swept, ...rows]))).slice(1) as Outcome[];
  assert.ok(reasons.filter((outcome) => kindOf(outcome) === 'ack handled').length > 20, 'rows ran');
  assert.deepEqual([state().last, heldNumbers(), state().lease], [60, [62], null]);
  assert.equal(state().gapAt, 60, 'the gap in front of 62 is open');
  assert.equal(kindOf(await clock.until(deliver(61))), 'ack handled');
  assert.deepEqual([runs.slice(-2), state().last], [['61:a', '62:a'], 62]);
});
