import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compose, type Context } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { onLocalStack } from '../servers/firestore-servers.ts';
import { virtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import {
  firestoreCounters,
  firestoreCounterStart,
  firestoreStreams,
} from '../../../shared/src/order/firestore.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import type { CounterStart } from '../../../shared/src/order/options.ts';
import { bench, messageOf } from './bench.ts';

const at = (next: number, epoch = 'e1'): CounterStart => ({ read: async () => ({ next, epoch }) });
const GAP = { timeout: '5m' } as const;
const FIVE_MINUTES = 300_000;

test('a stream that is as new as its consumer begins at 1, at once', async () => {
  const { runs, worker } = bench({ start: at(2) });
  await worker().deliver(1);
  await worker().deliver(2);
  assert.deepEqual(runs, ['1:a', '2:a']);
});

test('of an older stream nothing that comes is skipped, in whatever order it comes', async () => {
  const { clock, runs, worker } = bench({ start: at(1_002), gap: GAP });
  // The counter has handed out 1,001, and 998 to 1,001 are in the backlog.
  for (const number of [1_001, 999, 1_000, 998]) {
    assert.deepEqual(await worker().deliver(number), { kind: 'ack', reason: 'held' });
  }
  await clock.advance(FIVE_MINUTES - 1_000);
  assert.equal((await worker().sweep()).drained, 0);
  await clock.advance(1_000);
  const { drained, skipped } = await worker().sweep();
  assert.deepEqual([drained, skipped], [4, 0]);
  assert.deepEqual(runs, ['998:a', '999:a', '1000:a', '1001:a']);
  await worker().deliver(1_002);
  assert.equal(runs.at(-1), '1002:a');
});

test('what is older than the start and comes late is a dead letter, not a stale ack', async () => {
  const { clock, worker } = bench({ start: at(1_002), gap: GAP });
  await worker().deliver(1_001);
  await clock.advance(FIVE_MINUTES);
  await worker().sweep();
  const outcome = await worker().deliver(1_000);
  assert.equal(outcome.kind === 'deadLetter' && (outcome.error as { code?: string }).code, 'LATE_ARRIVAL');
});

test('numbers that were handed out later are waited for, and those before are not, whatever the policy', async () => {
  const { clock, runs, state, worker } = bench({ start: at(12), gap: GAP });
  // 10 was published before the subscription existed; 12 is certain to come.
  for (const number of [9, 11, 13]) await worker().deliver(number);
  for (let minutes = 0; minutes < 60; minutes += 5) {
    await clock.advance(FIVE_MINUTES);
    await worker().sweep();
  }
  assert.deepEqual(runs, ['9:a', '11:a']);
  assert.equal(state().last, 11);
  await worker().deliver(12);
  assert.deepEqual(runs.slice(2), ['12:a', '13:a']);
});

test('what is older than the consumer is not published again for it', async () => {
  const asked: string[] = [];
  const repair = {
    republish: async (key: string, { from, to }: Readonly<{ from: number; to: number }>) => {
      asked.push(`${key} ${from}-${to}`);
      return [];
    },
  };
  const { clock, runs, worker } = bench({ start: at(12), gap: { ...GAP, repair } });
  for (const number of [9, 11]) await worker().deliver(number);
  for (let turn = 0; turn < 3; turn += 1) {
    await clock.advance(FIVE_MINUTES);
    await worker().sweep();
  }
  assert.deepEqual(asked, ['k 10-10']);
  assert.deepEqual(runs, ['9:a', '11:a']);
});

test('a stream far beyond maxAhead begins as well, and what is older than that is late', async () => {
  const { clock, runs, worker } = bench({ start: at(5_000_001), gap: GAP, maxAhead: 1_000 });
  const old = await worker().deliver(4_000_000);
  assert.equal(old.kind, 'deadLetter');
  for (const number of [5_000_000, 5_000_001]) await worker().deliver(number);
  await clock.advance(FIVE_MINUTES);
  await worker().sweep();
  assert.deepEqual(runs, ['5000000:a', '5000001:a']);
});

test('without a counter the stream does not guess: the message is delivered again, with the reason', async () => {
  const { runs, worker } = bench({ start: { read: async () => undefined } });
  const outcome = await worker().deliver(7);
  assert.equal(outcome.kind === 'retry' && (outcome.error as { code?: string }).code, 'COUNTER_MISSING');
  assert.deepEqual(runs, []);
});

test('a message of a counter that was replaced before the consumer came is a dead letter', async () => {
  const { worker } = bench({ start: at(3, 'new') });
  const outcome = await worker().deliver(2, { attributes: { sequenceEpoch: 'old' } });
  assert.equal(outcome.kind === 'deadLetter' && (outcome.error as { code?: string }).code, 'EPOCH_MISMATCH');
});

test('a start that is neither a number nor a counter is refused', () => {
  const { store } = bench();
  for (const start of [0, 'counter', {}]) {
    assert.throws(
      () => orderedDelivery(store, { start: start as never }),
      /start is .*; accepted: a whole number/,
    );
  }
});

test('in Firestore the start is that of the publishers’ own counter, read once and kept with the stream', async (t) => {
  const { firestore, close } = await onLocalStack('enforce');
  t.after(close);
  const scope = { collection: 'numbers', scope: 'topic-1' };
  const counters = firestoreCounters(firestore, scope);
  const counter = firestoreCounterStart(firestore, scope);
  assert.equal(await counter.read('k'), undefined);
  await counters.take('k', { id: 'one', count: 300_000, epoch: 'e1' });
  assert.deepEqual(await counter.read('k'), { next: 300_001, epoch: 'e1' });
  let reads = 0;
  const start: CounterStart = {
    read(key) {
      reads += 1;
      return counter.read(key);
    },
  };
  const store = firestoreStreams(firestore);
  const handler = compose(async () => ack(), [orderedDelivery(store, { start }).middleware]);
  const clock = virtualClock();
  const context: Context = {
    consumer: 'c',
    source: 'sub',
    now: clock.now,
    deadline: performance.now() + 60_000,
    signal: new AbortController().signal,
    log: silent,
  };
  assert.deepEqual(await handler(messageOf(300_000), context), ack('held'));
  assert.deepEqual(await handler(messageOf(299_999), context), ack('held'));
  assert.equal(reads, 1);
  const { state } = await store.read({ consumer: 'c', source: 'sub', key: 'k' });
  assert.deepEqual([state?.opening, state?.epoch, state?.last], [300_001, 'e1', 250_000]);
  assert.deepEqual(state?.skipped, [{ from: 1, to: 250_000 }]);
});
