import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { virtualClock } from '../testing/index.ts';
import { keyedBatch } from './keyed-batch.ts';

test('what is asked for during a run goes together into the next, and other keys do not wait', async () => {
  const clock = virtualClock();
  const runs: string[] = [];
  const ask = keyedBatch<number, number>({
    async run(key, items) {
      runs.push(`${key} ${items.join('+')}`);
      await sleep(clock, 10);
      return items.map((item) => item * 2);
    },
  });
  const answers = Promise.all([ask('a', 1), ask('a', 2), ask('b', 3), ask('a', 4)]);
  assert.deepEqual(await clock.until(answers), [2, 4, 6, 8]);
  assert.deepEqual(runs, ['a 1', 'b 3', 'a 2+4']);
  assert.equal(await clock.until(ask('a', 5)), 10);
});

test('a run that fails fails its own items alone', async () => {
  const clock = virtualClock();
  const ask = keyedBatch<number, string>({
    async run(_key, items) {
      await sleep(clock, 10);
      if (items.includes(1)) throw new Error('the store is down');
      return items.map(String);
    },
  });
  const [first, second] = await clock.until(Promise.allSettled([ask('a', 1), ask('a', 2)]));
  assert.deepEqual([first.status, second.status], ['rejected', 'fulfilled']);
});

test('a run takes no more items than fit', async () => {
  const clock = virtualClock();
  const sizes: number[] = [];
  const ask = keyedBatch<number, true>({
    fitting: (items) => Math.min(items.length, 2),
    async run(_key, items) {
      sizes.push(items.length);
      await sleep(clock, 1);
      return items.map(() => true as const);
    },
  });
  await clock.until(Promise.all([1, 2, 3, 4, 5, 6].map((item) => ask('a', item))));
  assert.deepEqual(sizes, [1, 2, 2, 1]);
});

test('an answer that takes long does not keep the next run', async () => {
  const clock = virtualClock();
  const begun: number[] = [];
  const ask = keyedBatch<number, number>({
    async run(_key, items) {
      begun.push(clock.now());
      return items.map((item) => sleep(clock, 1_000).then(() => item));
    },
  });
  const answers = Promise.all([ask('a', 1), ask('a', 2)]);
  assert.deepEqual(await clock.until(answers), [1, 2]);
  assert.equal(begun[0], begun[1]);
});

test('a run answers early what it has served, also of what waits behind it', async () => {
  const clock = virtualClock();
  const runs: (readonly number[])[] = [];
  const ask = keyedBatch<number, 'served'>({
    async run(_key, items, answerEarly) {
      runs.push(items);
      await sleep(clock, 10);
      answerEarly((item) => (item <= 2 ? 'served' : undefined));
      await sleep(clock, 90);
      return items.map(() => 'served' as const);
    },
  });
  const [first, second, third] = [ask('a', 1), ask('a', 2), ask('a', 3)];
  const began = clock.now();
  await clock.until(Promise.all([first, second]));
  assert.equal(clock.now() - began, 10);
  await clock.until(third);
  assert.deepEqual([runs, clock.now() - began], [[[1], [3]], 200]);
});
