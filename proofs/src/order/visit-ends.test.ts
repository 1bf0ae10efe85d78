/**
 * When a visit ends, and the state that it leaves: its time, and its turn among the streams that may kill the process.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { storeUnavailable } from '../../../shared/src/errors.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { streamPolicy } from '../../../shared/src/order/options.ts';
import { bench, type Bench, CONSUMER, kindOf, LEASE_MS, messageOf, REF } from './bench.ts';
import type { Store } from './faulty-store.ts';
import { made } from '../../../shared/src/testing/stream-samples.ts';
import { contextFor } from './schedule.ts';
import { streamWorkers } from '../../../shared/src/order/in-order.ts';

test('a visit ends with its time, also where deliveries start one batch after the other', async () => {
  const { clock, store } = bench();
  const workers = streamWorkers(streamPolicy(store, { clock }));
  const slow = async () => {
    await sleep(clock, 300);
    return ack();
  };
  const deliver = (number: number) =>
    workers.deliver(messageOf(number), { key: 'k', number }, contextFor(clock, 60_000, CONSUMER), slow);
  const visited = workers.visit(REF, contextFor(clock, 2_000, CONSUMER), slow).then(() => clock.monotonic());
  const outcomes = [deliver(1)];
  for (let number = 2; number <= 20; number += 1) {
    await clock.advance(290);
    outcomes.push(deliver(number));
  }
  await clock.advance(10_000);
  const endedAt = await visited;
  assert.ok(endedAt >= 1_500 && endedAt <= 2_400, `${endedAt} ms`);
  for (const one of outcomes) assert.equal((await one).kind, 'ack');
});

test('a stream whose store fails in its turn leaves the turn to the others', async () => {
  const { clock, store, worker } = bench();
  const suspect = { attempts: 2, suspectsTo: 1 };
  for (const [index, key] of ['a', 'b'].entries())
    await made(store, { ...suspect, readyAt: index + 1, held: 1 }, [1], key);
  const failing = (plain: Store): Store => ({
    ...plain,
    commit: (ref, ...rest) =>
      ref.key === 'a' ? Promise.reject(storeUnavailable('down')) : plain.commit(ref, ...rest),
  });
  const swept = worker({ wrap: failing }).sweep();
  const result = await Promise.race([swept, clock.advance(120_000).then(() => undefined)]);
  assert.deepEqual([result?.failed, result?.done], [1, 1]);
});

/** Streams whose number 1 may have ended its process, with as many attempts left as make it wait for its turn. */
async function suspects(made: Bench, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    void made.worker({ faults: { 'commit 1': { kind: 'crash', when: 'after' } } }).deliver(1, { key });
  }
  await made.clock.advance(2 * LEASE_MS);
}

test('a stream that waits for its turn keeps no delivery waiting: deliveries are answered or held as usual', async () => {
  const made = bench({ retry: { maxAttempts: 2 } });
  const { clock, state, runs } = made;
  await suspects(made, ['a', 'b']);
  const { deliver, sweep } = made.worker({
    handler: async (message) => {
      runs.push(`begins ${message.attributes.sequenceKey}`);
      await sleep(clock, 8_000);
      runs.push('ends');
      return ack();
    },
  });
  for (const key of ['a', 'b']) assert.equal(kindOf(await deliver(1, { key })), 'ack held');
  runs.length = 0;
  const swept = sweep();
  await clock.advance(1_000);
  const from = clock.monotonic();
  const waits = runs.includes('begins a') ? 'b' : 'a';
  for (const number of [1, 3]) assert.equal(kindOf(await deliver(number, { key: waits })), 'ack held');
  assert.equal(kindOf(await deliver(1, { key: waits, content: 'b' })), 'deadLetter SEQUENCE_CONFLICT');
  assert.equal(clock.monotonic(), from, 'while the other one still runs');
  assert.equal((await clock.until(swept)).done, 2);
  const order = runs.filter((run) => /begins|ends/.test(run)).map((run) => run.split(' ')[0]);
  assert.deepEqual(order, ['begins', 'ends', 'begins', 'ends'], 'one after the other');
  assert.deepEqual([state('a').last, state('b').last], [1, 1]);
});

test('a turn that does not come in the time of a visit, or of a delivery, leaves its stream due', async () => {
  const made = bench({ retry: { maxAttempts: 2 }, maxHeldBytes: 1 });
  const { clock, state } = made;
  await suspects(made, ['a', 'b']);
  // The stream is taken over, found empty and released: the redelivered message cannot be held, and its delivery starts
  // it.
  await made.worker().sweep();
  const { deliver } = made.worker({
    handler: async () => {
      await sleep(clock, 8_000);
      return ack();
    },
  });
  const runs = deliver(1, { key: 'a' });
  await clock.advance(1_000);
  const waits = deliver(1, { key: 'b', limitMs: 3_000 });
  await clock.advance(3_000);
  assert.equal(kindOf(await waits), 'retry LEASE_LOST');
  const comes = deliver(1, { key: 'b' });
  await clock.advance(1_000);
  assert.deepEqual([state('b').last, state('b').lease], [0, null], 'not beside the other one');
  assert.deepEqual(
    [kindOf(await clock.until(runs)), kindOf(await clock.until(comes))],
    Array(2).fill('ack handled'),
  );
  assert.deepEqual([state('a').last, state('b').last], [1, 1]);
});
