import assert from 'node:assert/strict';
import { test } from 'node:test';
import { turnBatch } from './turn-batch.ts';

test('what is asked for in one turn is sent together, and each gets its own answer', async () => {
  const sent: (readonly number[])[] = [];
  const ask = turnBatch<number, number>(setImmediate, (asked) => {
    sent.push(asked.map(({ item }) => item));
    for (const { item, answer } of asked) answer(item === 2 ? Promise.reject(new Error('two')) : item * 10);
  });
  const [one, two, three] = await Promise.allSettled([ask(1), ask(2), ask(3)]);
  assert.deepEqual(
    [one, three],
    [
      { status: 'fulfilled', value: 10 },
      { status: 'fulfilled', value: 30 },
    ],
  );
  assert.equal(two.status, 'rejected');
  assert.equal(await ask(4), 40);
  assert.deepEqual(sent, [[1, 2, 3], [4]]);
});

test('what the sender throws is the answer to the whole turn', async () => {
  const ask = turnBatch<number, number>(setImmediate, () => {
    throw new Error('closed');
  });
  const answers = await Promise.allSettled([ask(1), ask(2)]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
});
