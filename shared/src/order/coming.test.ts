/** What comes together with the number that an idle key waits for, or while the key is let go of, is not stored either. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { compose } from '../handler.ts';
import { ack, type Outcome } from '../outcome.ts';
import type { VirtualClock } from '../testing/virtual-clock.ts';
import { inHandOf } from './in-hand.ts';
import { inOrder } from './in-order.ts';
import type { OrderStore } from './order-store.ts';
import { bench, CONSUMER, messageOf } from './testing/bench.ts';
import { contextFor } from './testing/plan.ts';

const reasonOf = (outcome: Outcome): string => (outcome.kind === 'ack' ? outcome.reason : outcome.kind);

/** A chain over a store whose calls take as long as `takes` says of the n-th one; and which calls it made. */
function slowStore(takes: (call: string) => number) {
  const { clock, store, state, heldNumbers } = bench();
  const calls: string[] = [];
  const slow = async <Result>(call: string, work: () => Promise<Result>): Promise<Result> => {
    calls.push(call);
    const name = `${call} ${calls.filter((one) => one === call).length}`;
    await sleep(clock, takes(name));
    const result = await work();
    await sleep(clock, takes(`${name} answered`));
    return result;
  };
  const slowed: OrderStore = {
    ...store,
    read: (ref) => slow('read', () => store.read(ref)),
    write: (...args) => slow('write', () => store.write(...args)),
    transact: (...args) => slow('transact', () => store.transact(...args)),
  };
  const chain = compose(async () => ack(), [inOrder(slowed, { clock })]);
  const deliver = (number: number, limitMs = 60_000): Promise<string> =>
    chain(messageOf(number), contextFor(clock, limitMs, CONSUMER)).then(reasonOf);
  return { clock, calls, state, heldNumbers, deliver };
}
/** Within half a second: those that wait have one. */
const soon = (clock: VirtualClock, one: Promise<string>): Promise<string> => clock.until(one, 500);
const settled = (clock: VirtualClock, all: readonly Promise<string>[]): Promise<readonly string[]> =>
  clock.until(Promise.all(all));

test('what is looked at before the next number, which has come too, waits for whoever brings that', async () => {
  const { clock, calls, state, deliver } = slowStore((call) => (call === 'read 2' ? 500 : 10));
  const first = deliver(1);
  await clock.advance(5);
  const ahead = [3, 4, 5].map((number) => deliver(number));
  await clock.advance(100);
  // Its look comes after theirs.
  const second = deliver(2);
  assert.deepEqual([state().last, state().lease], [1, null]);
  assert.deepEqual(new Set(await settled(clock, [first, second, ...ahead])), new Set(['handled']));
  assert.deepEqual([state().last, calls.includes('transact')], [5, false]);
});

test('what comes while the key is let go of takes it again, without a look', async () => {
  const { clock, calls, state, deliver } = slowStore((call) => (call.startsWith('write 2') ? 200 : 10));
  const first = deliver(1);
  await clock.advance(100);
  // The second write, which lets go of the key, is on its way.
  assert.deepEqual(calls, ['read', 'write', 'write']);
  const others = [2, 3, 4].map((number) => deliver(number));
  assert.deepEqual(new Set(await settled(clock, [first, ...others])), new Set(['handled']));
  assert.deepEqual(
    calls.slice(0, 4),
    ['read', 'write', 'write', 'write'],
    'taken under the version of its own write',
  );
  assert.deepEqual([state().last, state().lease, new Set(calls.slice(1))], [4, null, new Set(['write'])]);
});

test('where the next number has not come, what is ahead of it is stored at once', async () => {
  const { clock, heldNumbers, deliver } = slowStore(() => 10);
  const begun = clock.now();
  assert.deepEqual(
    await settled(
      clock,
      [3, 4].map((number) => deliver(number)),
    ),
    ['held', 'held'],
  );
  assert.ok(clock.now() - begun < 100);
  assert.deepEqual(heldNumbers(), [3, 4]);
});

test('whoever was waited for and fails keeps nobody waiting, nor his own redelivery', async () => {
  const { clock, heldNumbers, state, deliver } = slowStore((call) => {
    if (call === 'read 2') throw new Error('no answer');
    return 10;
  });
  const second = deliver(2);
  await clock.advance(5);
  // Its look comes after that of 2, and fails.
  const first = deliver(1);
  assert.deepEqual([await soon(clock, first), await soon(clock, second)], ['retry', 'held']);
  assert.deepEqual(heldNumbers(), [2]);
  assert.equal(await soon(clock, deliver(1)), 'handled');
  assert.deepEqual([state().last, heldNumbers()], [2, []]);
});

/** Of a process's deliveries in hand, without the rest of the stage. */
function handOf() {
  const { clock, store } = bench();
  const hand = inHandOf(store);
  const ref = { consumer: CONSUMER, key: 'k' };
  const turnOf = async (number: number, arrivedAt: number, next?: number): Promise<string> => {
    const arrival = { key: 'k', number, hash: 'a', epoch: undefined };
    const delivery = {
      ref,
      arrival,
      message: messageOf(number),
      context: contextFor(clock, 60_000, CONSUMER),
    };
    return (await hand.turnOf(delivery, async () => ack(), clock, arrivedAt, next)).kind;
  };
  return { clock, hand, ref, turnOf };
}

test('the number that is waited for does not wait itself, nor does a copy of it', async () => {
  const { clock, hand, ref, turnOf } = handOf();
  hand.came(ref, 1);
  const ahead = turnOf(2, 0, 1);
  assert.equal(await clock.until(turnOf(1, 0), 0), 'none');
  const done = hand.working(ref, 2);
  const copy = turnOf(1, 0);
  done();
  assert.deepEqual([await clock.until(ahead, 0), await clock.until(copy, 0)], ['none', 'none']);
});

test('those that wait go on waiting while a copy of the number is there, whatever else is answered, and are in hand then', async () => {
  const { clock, hand, ref, turnOf } = handOf();
  hand.came({ ...ref, key: 'another' }, 1);
  assert.equal(await clock.until(turnOf(2, 0, 1), 0), 'none', 'another key');
  const [gone, , other] = [1, 1, 7].map((number) => hand.came(ref, number));
  const second = turnOf(2, 0, 1);
  await clock.advance(100);
  gone?.();
  other?.();
  await clock.advance(400);
  const third = turnOf(3, 500, 1);
  await clock.advance(499);
  assert.equal(hand.line(ref, 2, 2).length, 2);
  // 2 has waited for a second.
  await clock.advance(1);
  assert.equal(await second, 'none');
  const done = hand.working(ref, 3);
  assert.equal(hand.line(ref, 3, 1).length, 1);
  done();
  assert.equal(await third, 'none');
});

test('far into a stream they wait, too, and nobody does in one that was left at a hole', async () => {
  const { clock, hand, ref, turnOf } = handOf();
  const far = hand.came(ref, 5_000);
  const next = turnOf(5_001, 0, 5_000);
  await clock.advance(0);
  assert.equal(hand.line(ref, 5_001, 1).length, 1);
  far();
  assert.equal(await next, 'none');
  const done = hand.working(ref, 5_000);
  const behindHole = turnOf(5_003, 0);
  await clock.advance(0);
  done();
  assert.equal(await behindHole, 'none');
  hand.came(ref, 5_001);
  assert.equal(await clock.until(turnOf(5_002, 0, 5_001), 0), 'none');
});

test('nothing is left of a key for which somebody came who does not work on it', async () => {
  const { clock, hand, ref, turnOf } = handOf();
  for (const [number, waitedMs] of [
    [5_000, 0],
    [3, 1_000],
  ] as const) {
    const gone = hand.came(ref, 1);
    const arrivedAt = clock.monotonic();
    await clock.advance(waitedMs);
    assert.equal(await clock.until(turnOf(number, arrivedAt, 1), 0), 'none', 'too far, or too late');
    gone();
    const turn = turnOf(2, clock.monotonic());
    assert.equal(await clock.until(turn, 0), 'none', 'there is nobody to wait for');
  }
});

test('whoever was waited for and does not run it keeps nobody for longer than a second', async () => {
  const { clock, heldNumbers, state, deliver } = slowStore((call) => (call === 'write 1' ? 5_000 : 10));
  const [first, second] = [deliver(1), deliver(2)];
  await clock.advance(1_200);
  assert.deepEqual([await second, heldNumbers()], ['held', [2]]);
  assert.equal(await clock.until(first), 'handled');
  await clock.advance(100);
  assert.deepEqual([state().last, heldNumbers()], [2, []]);
});

test('who has waited long enough for its look waits for nobody, and leaves nothing for others to wait at', async () => {
  const { clock, heldNumbers, deliver } = slowStore((call) => (call === 'read 1' ? 1_100 : 10));
  // The number that the key waits for has come, and its time is over when it has been looked at.
  const third = deliver(3);
  await clock.advance(5);
  const first = deliver(1, 1_000);
  assert.deepEqual([await clock.until(third), await clock.until(first)], ['held', 'retry']);
  const begun = clock.now();
  assert.deepEqual(await settled(clock, [deliver(7)]), ['held']);
  assert.ok(clock.now() - begun < 100, 'nobody works on the key');
  assert.deepEqual(heldNumbers(), [3, 7]);
});
