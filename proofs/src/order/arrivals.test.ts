/**
 * Deliveries that arrive at an awkward moment: while a worker is about to become idle, when their time is over already,
 * or where a message that nothing shows has their number.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ack, type Outcome } from '../../../shared/src/outcome.ts';
import { compose } from '../../../shared/src/handler.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import { bench, CONSUMER, kindOf, messageOf } from './bench.ts';
import { contextFor } from './schedule.ts';
import type { Store } from './faulty-store.ts';

test('a delivery that arrives in any turn of the event loop in which a worker becomes idle is answered at once', async () => {
  for (let turns = 0; turns <= 60; turns += 1) {
    const { clock, worker } = bench();
    let late: Promise<Outcome> | undefined;
    const arrives = async (): Promise<void> => {
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      late = deliver(2);
    };
    let commits = 0;
    const settled = (store: Store): Store => ({
      ...store,
      async commit(...args) {
        const version = await store.commit(...args);
        commits += 1;
        if (commits === 2) void arrives();
        return version;
      },
    });
    const { deliver } = worker({ wrap: settled });
    assert.equal(kindOf(await deliver(1)), 'ack handled');
    await clock.advance(100);
    assert.ok(late !== undefined);
    const outcome = await Promise.race([late, clock.advance(100).then(() => undefined)]);
    assert.equal(outcome && kindOf(outcome), 'ack handled', `it arrived ${turns} turns after the commit`);
  }
});

test('a delivery whose signal was aborted before it arrived is answered, whatever the store does', async () => {
  const { clock, store } = bench();
  const silent: Store = { ...store, read: () => new Promise(() => undefined) };
  const deliver = compose(async () => ack(), [orderedDelivery(silent, { clock }).middleware]);
  const context = { ...contextFor(clock, 60_000, CONSUMER), signal: AbortSignal.abort() };
  const outcome = deliver(messageOf(1), context);
  const first = await Promise.race([outcome, clock.advance(1_000).then(() => undefined)]);
  assert.equal(first && kindOf(first), 'retry LEASE_LOST');
});

test('a held message that no list shows refuses its number, and the worker does not look for it without end', async () => {
  const { clock, worker, state } = bench();
  let commits = 0;
  // Another program has changed its number.
  const hidden = (store: Store): Store => ({
    ...store,
    async commit(ref, seen, change) {
      commits += 1;
      if (commits > 100) throw new Error('a loop without a pause');
      return change.create?.some(({ number }) => number === 3) ? undefined : store.commit(ref, seen, change);
    },
    async transact(ref, work) {
      commits += 1;
      if (commits > 100) throw new Error('a loop without a pause');
      const { result } = await store.transact(ref, (inside) => work({ ...inside, commit: () => undefined }));
      return { applied: false, result };
    },
  });
  const { deliver } = worker({ wrap: hidden });
  assert.equal(kindOf(await deliver(2)), 'ack held');
  assert.equal(kindOf(await clock.until(deliver(3))), 'retry UNREADABLE_STATE');
  assert.ok(commits < 10, `${commits} commits`);
  assert.deepEqual([state().last, state().held], [0, 1]);
});
