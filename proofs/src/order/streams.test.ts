/**
 * Which messages are one stream, what is remembered of it, and how many streams a process can handle.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError, storeUnavailable } from '../../../shared/src/errors.ts';
import { compose } from '../../../shared/src/handler.ts';
import { ack, type Outcome } from '../../../shared/src/outcome.ts';
import { orderedDelivery, streamWorkers } from '../../../shared/src/order/in-order.ts';
import { streamPolicy } from '../../../shared/src/order/options.ts';
import { bench, CONSUMER, kindOf, messageOf, SOURCE } from './bench.ts';
import { contextFor } from './schedule.ts';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { sleep } from '../../../shared/src/clock.ts';
import { virtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import type { Duration } from '../../../shared/src/duration.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { memoryClaims } from '../../../shared/src/dedup/memory.ts';
import { memoryStreams } from '../../../shared/src/order/memory.ts';
import { refusal } from '../../../shared/src/testing/refusal.ts';

test('one sequenceKey through two subscriptions is two streams, each with its own numbers', async () => {
  const { worker, runs } = bench();
  const { deliver } = worker();
  for (const source of ['a', 'b']) {
    for (let number = 1; number <= 40; number += 1) {
      assert.equal(kindOf(await deliver(number, { source, content: source })), 'ack handled');
    }
  }
  assert.equal(runs.length, 80);
});

test('with the scope `consumer` it is one stream, whichever subscription a number comes through', async () => {
  const { worker, runs, store, contexts } = bench({ streamScope: 'consumer' });
  const { deliver, streams } = worker();
  assert.equal(kindOf(await deliver(2, { source: 'b' })), 'ack held');
  assert.equal(kindOf(await deliver(1, { source: 'a' })), 'ack handled');
  assert.deepEqual(runs, ['1:a', '2:a']);
  assert.deepEqual(
    contexts.map(({ source }) => source),
    ['a', 'b'],
    'each under the source that it came through',
  );
  assert.equal(store.stateOf({ consumer: CONSUMER, source: '', key: 'k' })?.last, 2);
  assert.equal((await streams.inspect({ consumer: CONSUMER, key: 'k' }))?.last, 2);
});

test('a number that is done, and whose content is forgotten, is a dead letter and not a silent ack', async () => {
  const { worker, runs } = bench();
  const { deliver } = worker();
  for (let number = 1; number <= 150; number += 1) await deliver(number);
  // Its numbering begins again, with other data and without an epoch.
  const kinds: string[] = [];
  for (let number = 1; number <= 150; number += 1)
    kinds.push(kindOf(await deliver(number, { content: 'b' })));
  const count = (kind: string): number => kinds.filter((one) => one === kind).length;
  assert.deepEqual(
    [count('deadLetter SEQUENCE_STALE_UNKNOWN'), count('deadLetter SEQUENCE_CONFLICT'), runs.length],
    [50, 100, 150],
  );
});

test('with `ack` it is acknowledged, with a warning for each', async () => {
  const warnings: string[] = [];
  const { store, clock } = bench();
  const { middleware } = orderedDelivery(store, { clock, onUnknownStale: 'ack' });
  const chain = compose(async () => ack(), [middleware]);
  const log = { info() {}, warn: (text: string) => void warnings.push(text), error() {} };
  const deliver = (number: number) =>
    chain(messageOf(number), { ...contextFor(clock, 60_000, CONSUMER), log });
  for (let number = 1; number <= 101; number += 1) await deliver(number);
  assert.equal(kindOf(await deliver(1)), 'ack stale');
  assert.equal(warnings.length, 1);
  assert.equal(kindOf(await deliver(2)), 'ack stale');
  assert.equal(warnings.length, 1, 'its content is remembered');
});

test('1,001 streams, one more than a process remembers, each go on in their order', async () => {
  const { store, clock, runs, worker } = bench();
  const { deliver } = worker();
  const keys = Array.from({ length: 1_001 }, (_, index) => `k${index}`);
  for (const numbers of [[1], [3], [4, 2], [5]]) {
    const outcomes = keys.flatMap((key) => numbers.map((number) => deliver(number, { key, content: key })));
    const answers = await clock.until(Promise.all(outcomes));
    assert.equal(answers.filter(({ kind }) => kind === 'ack').length, outcomes.length);
  }
  const ran = Map.groupBy(runs, (run) => run.split(':')[1]);
  assert.equal(ran.size, 1_001);
  for (const [key, of] of ran)
    assert.deepEqual(
      of,
      [1, 2, 3, 4, 5].map((number) => `${number}:${key}`),
    );
  for (const key of keys) {
    const { last, held, lease } = store.stateOf({ consumer: CONSUMER, source: SOURCE, key }) ?? assert.fail();
    assert.deepEqual([last, held, lease], [5, 0, null]);
  }
});

/** Bytes of the heap, in a turn of the process in which no promise keeps anything. */
async function heapUsed(): Promise<number> {
  await new Promise(setImmediate);
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let round = 0; round < 3; round += 1) collect();
  return process.memoryUsage().heapUsed;
}

test('10,000 streams leave a bounded number of idle workers and a flat memory, and none at work', async (context) => {
  const { store, clock } = bench();
  const policy = streamPolicy(store, { clock });
  let workers = streamWorkers(policy);
  const deliver = (key: string, number: number): Promise<Outcome> =>
    workers.deliver(
      messageOf(number, { key }),
      { key, number },
      contextFor(clock, 60_000, CONSUMER),
      async () => ack(),
    );
  const bursts = async (from: number, to: number): Promise<void> => {
    for (let burst = from; burst < to; burst += 1) {
      const keys = Array.from({ length: 2_000 }, (_, index) => `${burst}-${index}`);
      const kinds = (await Promise.all(keys.map((key) => deliver(key, 1)))).map(kindOf);
      assert.equal(kinds.filter((kind) => kind === 'ack handled').length, 2_000);
      await clock.advance(1);
      assert.deepEqual([workers.size() <= 1_000, workers.busy()], [true, 0], `${workers.size()} in memory`);
    }
  };
  /** What all workers of a process keep: what is free once they are gone. */
  const kept = async (): Promise<number> => {
    await clock.advance(60_000);
    const before = await heapUsed();
    workers = streamWorkers(policy);
    return before - (await heapUsed());
  };
  await bursts(0, 1);
  const few = await kept();
  await bursts(1, 6);
  const many = await kept();
  const shown = [few, many].map((bytes) => `${Math.round(bytes / 100_000) / 10} MB`);
  context.diagnostic(`idle workers keep ${shown[0]} after 2,000 streams, and ${shown[1]} after 10,000`);
  for (const bytes of [few, many]) assert.ok(bytes > 1_000_000 && bytes < 24_000_000, `${bytes} bytes`);
  // Five times as many streams, and what the heap has beside them is some megabytes more or less.
  assert.ok(many < 2.5 * few, `${few} bytes after 2,000 streams, ${many} after 10,000`);
});

test('what is remembered of held messages is bounded for the process', async () => {
  const { store, clock } = bench();
  const workers = streamWorkers(streamPolicy(store, { clock }));
  const content = Buffer.alloc(500_000);
  for (let key = 0; key < 100; key += 1) {
    const sequence = { key: String(key), number: 2 };
    const message = messageOf(2, { key: String(key), content });
    await workers.deliver(message, sequence, contextFor(clock, 60_000, CONSUMER), async () => ack());
  }
  await clock.advance(1);
  assert.ok(workers.bytes() <= 32_000_000, `${workers.bytes()} bytes`);
});

test('also while many streams are at work', async () => {
  const { store, clock } = bench();
  const workers = streamWorkers(streamPolicy(store, { clock }));
  const content = Buffer.alloc(500_000);
  const slow = async () => {
    await sleep(clock, 5_000);
    return ack();
  };
  const deliver = (key: string, number: number) =>
    workers.deliver(
      messageOf(number, { key, ...(number > 1 && { content }) }),
      { key, number },
      contextFor(clock, 60_000, CONSUMER),
      slow,
    );
  const keys = Array.from({ length: 200 }, (_, index) => String(index));
  let most = 0;
  const outcomes = keys.flatMap((key) => [1, 3].map((number) => deliver(key, number)));
  for (let second = 0; second < 4; second += 1) {
    await clock.advance(1_000);
    assert.equal(workers.busy(), 200);
    most = Math.max(most, workers.bytes());
  }
  assert.ok(most > 16_000_000 && most <= 32_000_000, `${most} bytes`);
  for (const key of keys) outcomes.push(deliver(key, 2));
  for (const one of outcomes) assert.equal((await clock.until(one)).kind, 'ack');
  await clock.advance(1);
  assert.deepEqual([workers.busy(), workers.bytes()], [0, 0]);
  for (const key of keys) assert.equal(store.stateOf({ consumer: CONSUMER, source: SOURCE, key })?.last, 3);
});

test('so is what is remembered of commits whose outcome is not known', async () => {
  const { store, clock } = bench();
  const down = { ...store, commit: () => Promise.reject(storeUnavailable('down')) };
  const workers = streamWorkers(streamPolicy(down, { clock }));
  const content = Buffer.alloc(500_000);
  const outcomes = Array.from({ length: 100 }, (_, key) => {
    const message = messageOf(2, { key: String(key), content });
    const sequence = { key: String(key), number: 2 };
    return workers.deliver(message, sequence, contextFor(clock, 60_000, CONSUMER), async () => ack());
  });
  for (const one of outcomes) assert.equal((await clock.until(one)).kind, 'retry');
  await clock.advance(1);
  assert.deepEqual([workers.busy(), workers.size() <= 64], [0, true], `${workers.size()} in memory`);
});

test('misuse from JavaScript is refused with a ConfigError that says what is accepted', () => {
  const { store, clock } = bench();
  const refused: readonly (readonly [unknown, unknown, RegExp])[] = [
    [undefined, undefined, /store is undefined; accepted: .*no method read/],
    [{ read() {} }, {}, /store is .*no method held/],
    [store, { leese: '10s' }, /leese is no option; accepted: lease \(the nearest\)/],
    [
      store,
      { retry: { attempts: 3 } },
      /retry\.attempts is no option; accepted: maxAttempts \(the nearest\)/,
    ],
    [store, { clock: {} }, /clock is .*; accepted: /],
    [store, { retry: 3 }, /retry is 3; accepted: an object/],
    [store, { wake: 'soon' }, /wake is "soon"; accepted: a function/],
    [store, { streamScope: 'topic' }, /streamScope is "topic"; accepted: source, consumer/],
    [store, { payloads: {} }, /payloads/],
    [store, { clock, lease: 5 }, /lease is 5/],
  ];
  for (const [given, options, pattern] of refused) {
    assert.throws(
      () => orderedDelivery(given as never, options as never),
      (error) => error instanceof ConfigError && pattern.test(error.message),
      String(pattern),
    );
  }
});

test('a handler with a stage that needs more time than a lease is refused when it is put inside', () => {
  const clock = virtualClock();
  const once = dedup(memoryClaims({ clock }), { clock })(async () => ack());
  const under = (lease: Duration) => orderedDelivery(memoryStreams({ clock }), { clock, lease });
  const short = under('5s');
  for (const put of [short.middleware, short.sweep, short.wake]) {
    assert.throws(
      () => put(compose(once, [])),
      refusal('lease', /^lease is "5s"; accepted: more than minimumHandlerTime .*\(5000 ms\)/),
    );
  }
  under('6s').middleware(once);
});
