/**
 * Deliveries that arrive at an awkward moment: while a worker is about to become idle.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Outcome } from '../outcome.ts';
import { bench, kindOf } from './testing/bench.ts';
import type { Store } from './testing/faulty-store.ts';

test('a delivery that arrives in any turn of a worker that becomes idle is answered at once', async () => {
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
