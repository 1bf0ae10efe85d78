/**
 * Commits beside a running handler: how often they come, and what a lease that is lost means for the handler.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { ack, retry } from '../../../shared/src/outcome.ts';
import { bench, kindOf, REF } from './bench.ts';
import type { Store } from './faulty-store.ts';
import { patchOf } from '../../../shared/src/testing/stream-samples.ts';

test('what arrives all the time beside a slow handler is held by one commit a second', async () => {
  const { clock, worker } = bench();
  let commits = 0;
  const counted = (store: Store): Store => ({
    ...store,
    commit: (...args) => {
      commits += 1;
      return store.commit(...args);
    },
  });
  const slow = async () => {
    await sleep(clock, 8_000);
    return ack();
  };
  const { deliver } = worker({ wrap: counted, handler: slow });
  const first = deliver(1);
  const others = [];
  for (let index = 0; index < 300; index += 1) {
    others.push(deliver(3 + index));
    await clock.advance(20);
  }
  assert.ok(commits >= 5 && commits <= 7, `${commits} commits in six seconds`);
  assert.equal(kindOf(await clock.until(first)), 'ack handled');
  for (const one of others) assert.equal(kindOf(await clock.until(one)), 'ack held');
});

test('a handler is aborted as soon as a checkpoint finds its lease gone', async () => {
  const { clock, worker, store, state } = bench();
  let abortedAt = Infinity;
  const { deliver } = worker({
    handler: async (_, { signal }) => {
      await sleep(clock, 10_000, signal);
      if (signal.aborted) abortedAt = clock.monotonic();
      return signal.aborted ? retry(signal.reason) : ack();
    },
  });
  const first = deliver(1);
  await clock.advance(100);
  // Restored from a backup in which no process had it.
  const { version } = await store.read(REF);
  await store.commit(REF, { version, state: state() }, { patch: patchOf({ lease: null, readyAt: null }) });
  const ahead = deliver(3);
  assert.equal(kindOf(await clock.until(ahead)), 'ack held');
  assert.equal(kindOf(await clock.until(first)), 'retry LEASE_LOST');
  assert.ok(abortedAt <= 2_000, `${abortedAt} ms`);
});
