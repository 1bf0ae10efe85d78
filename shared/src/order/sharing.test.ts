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
import { randomFrom } from './testing/random.ts';

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

test('twenty outstanding deliveries of one shuffled key cost at most five operations a message', async () => {
  for (const count of [300, 1_000]) {
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
    const random = randomFrom(5);
    const place = Array.from({ length: count }, (_, index) => index + 1 + random.upTo(50));
    const order = place
      .map((at, index) => ({ at, number: index + 1 }))
      .toSorted((left, right) => left.at - right.at);
    const queue = order.values();
    let deliveries = 0;
    const subscriber = async (): Promise<void> => {
      for (const { number } of queue) {
        deliveries += 1;
        assert.equal((await chain(messageOf(number), contextFor(clock, 600_000, CONSUMER))).kind, 'ack');
      }
    };
    await clock.until(Promise.all(Array.from({ length: 20 }, subscriber)));
    assert.deepEqual(
      ran,
      Array.from({ length: count }, (_, index) => index + 1),
    );
    assert.equal(deliveries, count);
    const each = operations() / count;
    assert.ok(each <= 5, `${each} operations a message of ${count}`);
  }
});

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
