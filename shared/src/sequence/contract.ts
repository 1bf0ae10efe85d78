/**
 * What every counter store must do, as a suite over a factory.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import type { CounterStore } from './counter-store.ts';

export type OpenedCounters = Readonly<{ counters: CounterStore; close(): Promise<void> }>;

export function counterContract(name: string, open: () => Promise<OpenedCounters>): void {
  suite(`counter store: ${name}`, () => {
    let opened: OpenedCounters;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());
    const take = (key: string, count: number, id: string = randomUUID(), epoch: string = randomUUID()) =>
      opened.counters.take(key, { id, count, epoch });

    test('numbers of a key begin at 1 and follow each other, under the epoch of the first request', async () => {
      const key = `${randomUUID()} / Łódź`;
      assert.deepEqual(await take(key, 1, 'a', 'first'), { first: 1, epoch: 'first' });
      assert.deepEqual(await take(key, 3, 'b', 'second'), { first: 2, epoch: 'first' });
      assert.deepEqual(await take(key, 1, 'c', 'third'), { first: 5, epoch: 'first' });
      assert.equal((await take(randomUUID(), 1)).first, 1);
    });

    test('B3: a request that comes again gets the numbers that it had, after 49 others', async () => {
      const key = randomUUID();
      await take(key, 2, 'mine', 'epoch');
      for (let other = 0; other < 49; other += 1) await take(key, 1);
      assert.deepEqual(await take(key, 2, 'mine', 'another'), { first: 1, epoch: 'epoch' });
      assert.equal((await take(key, 1)).first, 52);
    });

    test('requests at the same time share nothing and leave nothing out', async () => {
      const key = randomUUID();
      const ranges = await Promise.all(
        [1, 2, 3, 1, 2].map(async (count) => ({ count, ...(await take(key, count)) })),
      );
      const numbers = ranges.flatMap(({ first, count }) =>
        Array.from({ length: count }, (_, n) => first + n),
      );
      assert.deepEqual(
        numbers.toSorted((left, right) => left - right),
        [1, 2, 3, 4, 5, 6, 7, 8, 9],
      );
      assert.equal(new Set(ranges.map(({ epoch }) => epoch)).size, 1);
    });
  });
}
