import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { virtualClock } from '../testing/index.ts';
import { forEachAtMost } from './pool.ts';

test('it runs as many at once as the limit says, in their order', async () => {
  const clock = virtualClock();
  let [active, most] = [0, 0];
  const begun: number[] = [];
  const all = forEachAtMost(3, [0, 1, 2, 3, 4, 5, 6], async (item, index) => {
    begun.push(item);
    assert.equal(item, index);
    active += 1;
    most = Math.max(most, active);
    await sleep(clock, item === 0 ? 100 : 10);
    active -= 1;
  });
  await clock.until(all);
  assert.deepEqual([begun, most], [[0, 1, 2, 3, 4, 5, 6], 3]);
});

test('after the first failure nothing else begins, and the call rejects once what runs has settled', async () => {
  const clock = virtualClock();
  const begun: number[] = [];
  let settled = 0;
  const failing = forEachAtMost(2, [0, 1, 2, 3], async (item) => {
    begun.push(item);
    await sleep(clock, item === 0 ? 10 : 50);
    settled += 1;
    if (item === 0) throw new Error('the first');
  });
  await assert.rejects(clock.until(failing), /the first/);
  assert.deepEqual([begun, settled], [[0, 1], 2]);
});

test('items that fail to come are a failure too', async () => {
  async function* items(): AsyncGenerator<number> {
    yield 1;
    throw new Error('no page');
  }
  const done: number[] = [];
  await assert.rejects(
    forEachAtMost(4, items(), async (item) => done.push(item)),
    /no page/,
  );
  assert.deepEqual(done, [1]);
});

test('once it is over nothing else is begun, and that is no failure', async () => {
  const done: number[] = [];
  await forEachAtMost(
    1,
    [1, 2, 3],
    async (item) => done.push(item),
    () => done.length === 2,
  );
  assert.deepEqual(done, [1, 2]);
  await forEachAtMost(8, [], () => assert.fail('there is nothing'));
});
