import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, storeUnavailable, TransientError } from '../errors.ts';
import { memoryPublisher } from '../testing/memory-publisher.ts';
import type { CounterStore } from './counter-store.ts';
import { memoryCounters } from './memory.ts';
import { sequencer } from './sequencer.ts';
import { refusal } from '../testing/refusal.ts';

type Call = 'ok' | 'reply lost' | 'refused' | 'contention';

/** Counters whose calls go wrong one after the other; the last way stays. */
function counted(
  ways: readonly Call[] = ['ok'],
): CounterStore & { calls: string[]; active: number; most: number } {
  const counters = memoryCounters();
  const store = {
    calls: [] as string[],
    active: 0,
    most: 0,
    async take(...args: Parameters<CounterStore['take']>) {
      const way = ways[Math.min(store.calls.length, ways.length - 1)];
      store.calls.push(args[1].id);
      store.active += 1;
      store.most = Math.max(store.most, store.active);
      await new Promise((resolve) => setImmediate(resolve));
      store.active -= 1;
      if (way === 'contention') throw new TransientError('SEQUENCE_CONTENTION', 'others won');
      if (way === 'refused') throw storeUnavailable('refused');
      const range = await counters.take(...args);
      if (way === 'reply lost') throw storeUnavailable('reply lost');
      return range;
    },
  };
  return store;
}

const inTurn = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

test('B13: parallel callers get 1 to 20, each once, in one transaction after the first', async () => {
  const counters = counted();
  const { next } = sequencer(counters);
  const all = await Promise.all(inTurn(20).map(() => next('k1')));
  assert.deepEqual(
    all.map(({ number }) => number),
    inTurn(20),
  );
  assert.deepEqual([counters.calls.length, counters.most], [2, 1]);
  assert.equal(new Set(all.map(({ epoch }) => epoch)).size, 1);
});

test('keys have counters of their own and do not wait for each other', async () => {
  const counters = counted();
  const { next } = sequencer(counters);
  const [a, b] = await Promise.all([next('a'), next('b')]);
  assert.deepEqual([a.number, b.number, counters.most], [1, 1, 2]);
  assert.notEqual(a.epoch, b.epoch);
});

test('B3: a commit whose reply was lost gives its numbers to the repeat of its request', async () => {
  const counters = counted(['reply lost', 'refused', 'ok']);
  const { next } = sequencer(counters);
  assert.equal((await next('k')).number, 1);
  assert.equal(new Set(counters.calls).size, 1, 'the request kept its ID');
  assert.equal((await next('k')).number, 2);
});

test('B14: contention is one typed error for each caller, takes no number, and the next call goes on', async () => {
  const counters = counted(['contention', 'contention', 'ok']);
  const { next } = sequencer(counters);
  const codes = await Promise.all(inTurn(3).map(() => next('k').catch(codeOf)));
  assert.deepEqual(new Set(codes), new Set(['SEQUENCE_CONTENTION']));
  assert.equal((await next('k')).number, 1);
});

test('an unknown outcome is STORE_UNAVAILABLE after the last try', async () => {
  const counters = counted(['refused']);
  await assert.rejects(sequencer(counters, { maxAttempts: 4 }).next('k'), { code: 'STORE_UNAVAILABLE' });
  assert.equal(counters.calls.length, 4);
});

test('B13: publishing happens once per number, after its commit, with the number in the attributes', async () => {
  const publisher = memoryPublisher();
  const { publish } = sequencer(memoryCounters());
  const message = { topic: 't', data: Buffer.from('x'), attributes: { mine: 'yes' }, orderingKey: 'o' };
  await Promise.all([publish(publisher, 'k', message), publish(publisher, 'k', message)]);
  const [first, second] = publisher.published;
  const { sequenceEpoch, ...attributes } = second?.attributes ?? {};
  assert.deepEqual([second?.topic, second?.orderingKey], ['t', 'o']);
  assert.deepEqual(attributes, { mine: 'yes', sequence: '2', sequenceKey: 'k' });
  assert.ok(sequenceEpoch !== undefined && sequenceEpoch === first?.attributes.sequenceEpoch);
  assert.equal(publisher.published.length, 2);
});

test('a numbered message can be published again under the same number', async () => {
  const publisher = memoryPublisher();
  publisher.failOn(1, 'reply lost');
  const { number } = sequencer(memoryCounters());
  const message = await number('k', { topic: 't', data: Buffer.from('x'), attributes: {} });
  await assert.rejects(publisher.publish(message));
  await publisher.publish(message);
  assert.deepEqual(
    publisher.published.map(({ attributes }) => attributes.sequence),
    ['1', '1'],
  );
});

test('a batch is one reservation: its numbers follow each other in the order of the list', async () => {
  const counters = counted();
  const publisher = memoryPublisher();
  const { publishBatch, next } = sequencer(counters);
  const messages = ['a', 'b', 'c'].map((text) => ({ topic: 't', data: Buffer.from(text), attributes: {} }));
  const first = publishBatch(publisher, 'k', messages);
  const others = [next('k'), publishBatch(publisher, 'k', messages), next('k')];
  assert.deepEqual(await first, ['1', '2', '3']);
  const [one, , last] = await Promise.all(others);
  assert.deepEqual(
    [one, last].map((numbered) => (numbered as { number: number }).number),
    [4, 8],
  );
  assert.deepEqual(
    publisher.published.map(
      ({ data, attributes }) => `${Buffer.from(data).toString()}${attributes.sequence}`,
    ),
    ['a1', 'b2', 'c3', 'a5', 'b6', 'c7'],
  );
  assert.equal(counters.calls.length, 2);
  assert.deepEqual(await publishBatch(publisher, 'k', []), []);
  assert.equal((await next('k')).number, 9);
});

test('a batch whose publish fails in part rejects when all are answered; numberBatch publishes it again', async () => {
  const publisher = memoryPublisher();
  const { publishBatch, numberBatch } = sequencer(memoryCounters());
  const messages = ['a', 'b', 'c'].map((text) => ({ topic: 't', data: Buffer.from(text), attributes: {} }));
  publisher.failOn(2, 'refused');
  await assert.rejects(publishBatch(publisher, 'k', messages), { code: 'PUBLISH_FAILED' });
  assert.deepEqual(
    publisher.published.map(({ attributes }) => attributes.sequence),
    ['1', '3'],
  );
  const numbered = await numberBatch('k', messages);
  assert.deepEqual(
    numbered.map(({ attributes }) => attributes.sequence),
    ['4', '5', '6'],
  );
});

test('B14: a batch that loses to others takes no number, and nothing of it is published', async () => {
  const counters = counted(['contention', 'ok']);
  const publisher = memoryPublisher();
  const { publishBatch, next } = sequencer(counters);
  const messages = [{ topic: 't', data: Buffer.from('a'), attributes: {} }];
  await assert.rejects(publishBatch(publisher, 'k', messages), {
    name: 'TransientError',
    code: 'SEQUENCE_CONTENTION',
  });
  assert.equal(publisher.published.length, 0);
  assert.equal((await next('k')).number, 1);
});

test('what no topic would take is refused before a number is taken', async () => {
  const counters = counted();
  const { number, numberBatch, next } = sequencer(counters);
  const empty = { topic: 't', data: Buffer.from('x'), attributes: { goog: 'reserved' } };
  const good = { ...empty, attributes: {} };
  await assert.rejects(number('k', { ...good, attributes: { delay: '60' } }), { name: 'PermanentError' });
  await assert.rejects(numberBatch('k', [good, empty]), { code: 'RESERVED_ATTRIBUTE' });
  await assert.rejects(number('k', empty), { code: 'RESERVED_ATTRIBUTE' });
  await assert.rejects(next(''), {
    name: 'PermanentError',
    code: 'INVALID_MESSAGE',
    message: /^the sequenceKey has 0 bytes/,
  });
  await assert.rejects(next('ł'.repeat(513)), {
    name: 'PermanentError',
    code: 'INVALID_MESSAGE',
    message: /^the sequenceKey has 1026 bytes/,
  });
  assert.equal(counters.calls.length, 0);
  assert.throws(() => sequencer(counters, { maxAttempts: 0 }), refusal('maxAttempts'));
});

test('B50: an empty message, and what is no message, is refused as it is given, before a number is taken', async () => {
  const counters = counted();
  const { number, numberBatch } = sequencer(counters);
  const empty = { topic: 't', data: Buffer.alloc(0), attributes: {} };
  await assert.rejects(number('k', empty), { code: 'EMPTY_MESSAGE' });
  await assert.rejects(number('k', { ...empty, orderingKey: 'k' }), { code: 'EMPTY_MESSAGE' });
  await assert.rejects(numberBatch('k', [{ ...empty, attributes: { only: 'x' } }, empty]), {
    code: 'EMPTY_MESSAGE',
  });
  const map = { ...empty, data: Buffer.from('x'), attributes: new Map([['lost', 'x']]) as never };
  await assert.rejects(number('k', map), { code: 'INVALID_ATTRIBUTE' });
  assert.equal(counters.calls.length, 0);
});
