/**
 * When a visit ends, and what it leaves: its time, and its turn among the streams that may end the process.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { storeUnavailable } from '../../../shared/src/errors.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { streamPolicy } from '../../../shared/src/order/options.ts';
import { bench, CONSUMER, messageOf, REF } from './bench.ts';
import type { Store } from './faulty-store.ts';
import { made } from '../../../shared/src/testing/stream-samples.ts';
import { contextFor } from './schedule.ts';
import { streamWorkers } from '../../../shared/src/order/workers.ts';

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
