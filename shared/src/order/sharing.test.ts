/**
 * Concurrent deliveries of one key share their requests, and each still gets its own answer.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { codeOf } from '../errors.ts';
import { compose } from '../handler.ts';
import { ack } from '../outcome.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { coalesced } from './coalesced.ts';
import { inOrder } from './in-order.ts';
import { memoryOrder } from './memory.ts';
import type { OrderStore } from './order-store.ts';
import { bench, CONSUMER, messageOf } from './testing/bench.ts';
import { contextFor } from './testing/plan.ts';
import { type Random, randomFrom } from './testing/random.ts';

const LATENCY_MS = 15;

/** What is billed: documents read (a query at least one), written and deleted. */
function counting(
  store: OrderStore,
  wait: () => Promise<void>,
): Readonly<{ store: OrderStore; operations(): number }> {
  let operations = 0;
  const counted: OrderStore = {
    ...store,
    async read(ref) {
      operations += 1;
      await wait();
      return store.read(ref);
    },
    async write(ref, expected, patch, remove = []) {
      await wait();
      operations += 1 + remove.length;
      return store.write(ref, expected, patch, remove);
    },
    async transact(ref, base, query, decide) {
      await wait();
      return store.transact(ref, base, query, (state, held, nowMs) => {
        const decision = decide(state, held, nowMs);
        const { patch, create = [], remove = [] } = decision;
        operations += 1 + ('numbers' in query ? query.numbers.length : Math.max(1, held.length));
        operations += (patch === undefined ? 0 : 1) + create.length + remove.length;
        return decision;
      });
    },
    async held(ref, from, limit) {
      await wait();
      const found = await store.held(ref, from, limit);
      operations += Math.max(1, found.length);
      return found;
    },
  };
  return { store: counted, operations: () => operations };
}

type Stream = Readonly<{ count: number; seed: number; lateBy(number: number, random: Random): number }>;

/** One stream in one process, with twenty deliveries outstanding. */
async function streamed({
  count,
  seed,
  lateBy,
}: Stream): Promise<Readonly<{ each: number; perSecond: number }>> {
  const clock = virtualClock();
  const { store, operations } = counting(memoryOrder({ clock }), () => sleep(clock, LATENCY_MS));
  const ran: number[] = [];
  const chain = compose(
    async (message) => {
      ran.push(Number(message.attributes.sequence));
      return ack();
    },
    [inOrder(store, { clock })],
  );
  const random = randomFrom(seed);
  const inTurn = Array.from({ length: count }, (_, index) => index + 1);
  const queue = inTurn
    .map((number) => ({ at: number + lateBy(number, random), number }))
    .toSorted((left, right) => left.at - right.at)
    .values();
  let deliveries = 0;
  const subscriber = async (): Promise<void> => {
    for (const { number } of queue) {
      deliveries += 1;
      assert.equal((await chain(messageOf(number), contextFor(clock, 600_000, CONSUMER))).kind, 'ack');
    }
  };
  const begunAt = clock.monotonic();
  await clock.until(Promise.all(Array.from({ length: 20 }, subscriber)));
  assert.deepEqual([ran, deliveries], [inTurn, count]);
  return { each: operations() / count, perSecond: (count / (clock.monotonic() - begunAt)) * 1_000 };
}

const SEEDS = [1, 2, 3, 4, 5];
/** A message that is stored costs about 30 ms, and twenty at a time can be. */
const WITHOUT_WAITS = 400;

for (const { name, most, least, lateBy } of [
  { name: 'shuffled over 50', most: 5, least: WITHOUT_WAITS, lateBy: (_, random) => random.upTo(50) },
  { name: 'shuffled over 10', most: 1, least: WITHOUT_WAITS, lateBy: (_, random) => random.upTo(10) },
  { name: 'in turn', most: 1, least: WITHOUT_WAITS, lateBy: () => 0 },
  // What was stored behind the hole is run from the store, and then nothing is stored any more.
  {
    name: 'in turn but for one',
    most: 2,
    least: WITHOUT_WAITS,
    lateBy: (number) => (number === 100 ? 40 : 0),
  },
] satisfies readonly (Readonly<{ name: string; most: number; least: number }> & Pick<Stream, 'lateBy'>)[]) {
  test(`twenty outstanding deliveries of one key, ${name}: at most ${most} operations a message, and no waits`, async () => {
    for (const seed of SEEDS) {
      for (const count of seed === 1 ? [300, 1_000] : [300]) {
        const { each, perSecond } = await streamed({ count, seed, lateBy });
        assert.ok(each <= most, `${each} operations a message of ${count} with seed ${seed}`);
        assert.ok(perSecond >= least, `${perSecond} messages a second of ${count} with seed ${seed}`);
      }
    }
  });
}

test('duplicates and conflicts that arrive together each get their own answer', async () => {
  const { worker, heldNumbers } = bench();
  const { deliver } = worker();
  const outcomes = await Promise.all([
    deliver(3),
    deliver(3),
    deliver(3, { content: 'other' }),
    deliver(2),
    deliver(2, { key: 'j' }),
    deliver(200_000),
  ]);
  assert.deepEqual(
    outcomes.map((outcome) =>
      outcome.kind === 'ack' ? outcome.reason : codeOf('error' in outcome && outcome.error),
    ),
    ['held', 'held', 'SEQUENCE_CONFLICT', 'held', 'held', 'SEQUENCE_TOO_FAR_AHEAD'],
  );
  assert.deepEqual([heldNumbers(), heldNumbers('j')], [[2, 3], [2]]);
});

test('a shared transaction that fails is a retry for each that shared it', async () => {
  const { worker, heldNumbers } = bench();
  const { deliver } = worker({ faults: { 'transact 1': { kind: 'refused' } } });
  const outcomes = await Promise.all([2, 3, 4].map((number) => deliver(number)));
  assert.deepEqual(
    outcomes.map(({ kind }) => kind),
    ['retry', 'retry', 'retry'],
  );
  assert.deepEqual(heldNumbers(), []);
});

test('who comes while a request is out joins the next; what is too heavy together goes in several', async () => {
  const batches: (readonly number[])[] = [];
  const clock = virtualClock();
  const call = coalesced(
    async (items: readonly number[]) => {
      batches.push(items);
      await sleep(clock, 10);
      if (items.includes(13)) throw new Error('thirteen');
      return items.map((item) => item * 2);
    },
    (item) => item,
    10,
  );
  const first = call('k', 1);
  const other = call('j', 7);
  await clock.advance(1);
  const rest = [4, 5, 6, 99, 13].map((item) => call('k', item).catch(() => -1));
  assert.deepEqual(await clock.until(Promise.all([first, other, ...rest])), [2, 14, 8, 10, 12, 198, -1]);
  assert.deepEqual(batches, [[1], [7], [4, 5], [6], [99], [13]]);
  assert.equal(await clock.until(call('k', 3)), 6);
});
