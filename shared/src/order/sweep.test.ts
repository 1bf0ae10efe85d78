import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { TransientError } from '../errors.ts';
import { silent } from '../log.ts';
import { ack } from '../outcome.ts';
import { freshKey } from './key-state.ts';
import type { OrderStore, ReadyKey } from './order-store.ts';
import { type SweepContext, sweepOrder } from './sweep.ts';
import { type Bench, bench, CONSUMER } from './testing/bench.ts';

const contextOf = ({ clock }: Bench, limitMs: number, signal: AbortSignal): SweepContext => ({
  consumer: CONSUMER,
  now: clock.now,
  deadline: clock.monotonic() + limitMs,
  signal,
  log: silent,
});
const never = new AbortController().signal;

/** `count` keys that are due, each with its first number held. */
async function dueKeys({ store, clock, worker }: Bench, count: number): Promise<void> {
  const { deliver } = worker({ handler: async () => Promise.reject(new Error('once')) });
  for (let index = 0; index < count; index += 1) await deliver(1, { key: `k${index}` });
  await clock.advance(60_000);
  assert.equal((await store.ready(CONSUMER, count + 1)).length, count);
}

test('keys that cannot be taken, however many are due first, do not hide the others', async () => {
  const made = bench();
  const { clock, store, state } = made;
  await dueKeys(made, 2);
  const unreadable = Array.from({ length: 250 }, (_, index): ReadyKey => {
    const error = new TransientError('UNREADABLE_STATE', 'written by a later version');
    return { ref: { consumer: CONSUMER, key: `unreadable ${index}` }, error };
  });
  let queries = 0;
  const crowded: OrderStore = {
    ...store,
    async ready(consumer, limit) {
      queries += 1;
      assert.ok(queries < 10);
      return [...unreadable, ...(await store.ready(consumer, limit))].slice(0, limit);
    },
  };
  const sweep = sweepOrder(crowded, { clock }, async () => ack());
  const result = await sweep(contextOf(made, 60_000, never));
  assert.deepEqual(result, { ready: 252, taken: 2, drained: 2, failed: 250, repaired: 0, skipped: 0 });
  assert.deepEqual([state('k0').last, state('k1').last], [1, 1]);
});

test('one sweep looks after more keys than one query answers', async () => {
  const made = bench();
  await dueKeys(made, 230);
  const sweep = sweepOrder(made.store, { clock: made.clock }, async () => ack());
  const result = await sweep(contextOf(made, 60_000, never));
  assert.deepEqual(result, { ready: 230, taken: 230, drained: 230, failed: 0, repaired: 0, skipped: 0 });
});

test('sweeps at the same time take each key once', async () => {
  const made = bench();
  const { clock } = made;
  await dueKeys(made, 40);
  const sweep = sweepOrder(made.store, { clock }, async () => {
    await sleep(clock, 100);
    return ack();
  });
  const both = Promise.all([1, 2, 3].map(() => sweep(contextOf(made, 60_000, never))));
  const results = await clock.until(both);
  const sum = (field: 'taken' | 'drained'): number => results.reduce((all, one) => all + one[field], 0);
  assert.deepEqual([sum('taken'), sum('drained')], [40, 40]);
});

test('a sweep takes no key after its deadline, or after it is aborted', async () => {
  for (const end of ['deadline', 'abort'] as const) {
    const made = bench();
    const { clock } = made;
    await dueKeys(made, 40);
    const over = new AbortController();
    const sweep = sweepOrder(made.store, { clock }, async () => {
      await sleep(clock, 1_000);
      if (end === 'abort') over.abort();
      return ack();
    });
    const limitMs = end === 'deadline' ? 1_500 : 60_000;
    const { taken } = await clock.until(sweep(contextOf(made, limitMs, over.signal)));
    assert.ok(taken >= 8 && taken < 40, `${end}: ${taken}`);
  }
});

test('a key whose owner died with nothing held is let go of, and its next number runs', async () => {
  const made = bench();
  const { clock, store, worker, state } = made;
  const lease = { owner: 'dead', lengthMs: 1_000 };
  const patch = { lease, readyAt: clock.now() + 1_000 };
  await store.write({ consumer: CONSUMER, key: 'k' }, { version: undefined, base: freshKey(1) }, patch);
  await clock.advance(2_000);
  assert.deepEqual(await worker().sweep(), {
    ready: 1,
    taken: 1,
    drained: 0,
    failed: 0,
    repaired: 0,
    skipped: 0,
  });
  assert.deepEqual([state().lease, state().readyAt], [null, null]);
  assert.equal((await worker().deliver(1)).kind, 'ack');
  assert.equal(state().last, 1);
});
