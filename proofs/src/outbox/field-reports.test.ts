/**
 * Reports from the field as tests of the outbox, under their numbers: the right results for inputs that went wrong in
 * other systems. Further reports are tested beside the code that they concern (B10, B37).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf } from '../../../shared/src/errors.ts';
import type { OutgoingMessage } from '../../../shared/src/message.ts';
import { outbox } from '../../../shared/src/outbox/outbox.ts';
import { message, world } from './world.ts';

const { signal } = new AbortController();
const K = { sequenceKey: 'k' };

const refusal = (add: () => unknown): string => {
  try {
    add();
  } catch (error) {
    return `${codeOf(error)} ${String(error)}`;
  }
  return 'not refused';
};

test('B01, B50: what no topic takes is refused with its key and type, before a row or a number is written', async () => {
  const { store } = world();
  const box = outbox(store);
  const attributes = (values: object): OutgoingMessage => ({
    ...message('x'),
    attributes: { ...values } as never,
  });
  const cases: readonly (readonly [OutgoingMessage, RegExp])[] = [
    [attributes({ n: 1 }), /"?n"?.*number/s],
    [attributes({ n: undefined }), /"?n"?.*undefined/s],
    [attributes({ n: null }), /"?n"?.*null/s],
    [attributes({ n: {} }), /"?n"?.*object/s],
    [attributes({ '': 'x' }), /key|empty/],
    [attributes({ GoogFoo: 'x' }), /GoogFoo/],
    [attributes({ googclient_deliveryattempt: '3' }), /googclient_deliveryattempt/],
    [attributes({ n: '\ud800' }), /n/],
    [{ ...message('x'), data: 'text' as never }, /string/],
    [{ ...message('x'), data: Buffer.alloc(0) }, /empty/i],
    [{ ...message('x'), data: Buffer.alloc(0), orderingKey: 'k' }, /empty/i],
  ];
  for (const [bad, says] of cases) {
    await store.transact(async (transaction) => {
      const slot = await box.reserve(transaction, K);
      const text = refusal(() => slot.add(message('good'), bad));
      assert.match(text, says);
      assert.match(text, /^[A-Z_]+ /, text);
    });
  }
  assert.deepEqual(store.rows(), []);
  const taken = await store.transact(async (transaction) => {
    const near = attributes({ xgoog: 'a', 'go-og': 'b' });
    return (await box.reserve(transaction, K)).add(near, {
      ...attributes({ only: 'x' }),
      data: Buffer.alloc(0),
    });
  });
  assert.deepEqual(taken.numbers, [1, 2]);
});

test('B12: a call that comes again under its name gets its numbers, and adds nothing', async () => {
  const { store, add, texts, relayOf } = world();
  const first = await add('a', { ...K, id: 'order 1' });
  const again = await add('a', { ...K, id: 'order 1' });
  assert.deepEqual([first.numbers, again.numbers, again.isRepeat], [[1], [1], true]);
  assert.equal(store.rows().length, 1);
  await relayOf().sweep({ signal });
  assert.deepEqual(texts(), ['a']);
});

test('B14: of many callers at once on one key the one that loses each time gets an error, and takes no number; other keys are not affected', async () => {
  const { add, clock, store } = world({ maxAttempts: 1 });
  const count = 50;
  const all = Array.from({ length: count }, (_, index) => index);
  const settled = await clock.until(Promise.allSettled(all.map((index) => add(`one ${index}`, K))));
  const lost = settled.flatMap((one) => (one.status === 'rejected' ? [codeOf(one.reason)] : []));
  const numbers = settled.flatMap((one) => (one.status === 'fulfilled' ? one.value.numbers : []));
  assert.deepEqual([...new Set(lost)], ['TRANSACTION_CONTENTION']);
  assert.deepEqual(
    numbers.toSorted((left, right) => left - right),
    numbers.map((_, index) => index + 1),
  );
  assert.deepEqual((await add('next', K)).numbers, [numbers.length + 1]);
  const own = all.map((index) => add(`own ${index}`, { sequenceKey: `own ${index}` }));
  assert.ok((await clock.until(Promise.all(own))).every((added) => added.numbers[0] === 1));
  assert.equal(store.rows().length, numbers.length + 1 + count);
});

test('B16: the transaction that reads first and commits last has the higher number, and its row is sent although a relay came between', async () => {
  for (const slot of [K, {}]) {
    const { store, clock, add, texts, relayOf } = world();
    const box = outbox(store, { clock });
    const committed = Promise.withResolvers<void>();
    let runs = 0;
    const slow = store.transact(async (transaction) => {
      const reserved = await box.reserve(transaction, slot);
      if ((runs += 1) === 1) await committed.promise;
      return reserved.add(message('a'));
    });
    await clock.advance(2_000);
    const { numbers } = await add('b', slot);
    const relay = relayOf();
    await relay.sweep({ signal });
    assert.deepEqual(texts(), ['b']);
    await clock.advance(240_000);
    committed.resolve();
    const late = await clock.until(slow);
    if (slot === K) assert.deepEqual([numbers, late.numbers, runs], [[1], [2], 2]);
    await relay.sweep({ signal });
    assert.deepEqual(texts(), ['b', 'a']);
    assert.ok(store.rows().every(({ state }) => state === 'sent'));
  }
});

test('B20: equal messages of one second are two rows, and any text may name a call', async () => {
  const { add, published, relayOf } = world();
  await add('same');
  await add('same');
  for (const id of ['orders/42 ü', '.', '__x__', '/']) await add('named', { id });
  await relayOf().sweep({ signal });
  assert.equal(new Set(published.map(({ attributes }) => attributes['dedupId'])).size, 6);
});

test('B31: a command leaves with the commit of the state that asks for it: never before, and after a crash all the same', async () => {
  const { store, clock, texts, relayOf } = world();
  const relay = relayOf();
  const box = outbox(store, { relay, clock });
  const undo = async (fails: boolean) =>
    store.transact(async (transaction) => {
      const added = (await box.reserve(transaction, K)).add(message('undo'));
      await relay.sweep({ signal });
      assert.deepEqual(texts(), [], 'nothing leaves before the state is committed');
      if (fails) throw new Error('the state was refused');
      return added;
    });
  await assert.rejects(undo(true), /refused/);
  await relay.sweep({ signal });
  assert.deepEqual([texts(), store.rows()], [[], []]);
  // Its process dies before afterCommit: another one's relay sends it.
  assert.deepEqual((await undo(false)).numbers, [1]);
  await relayOf().sweep({ signal });
  await relayOf().sweep({ signal });
  assert.deepEqual(texts(), ['undo']);
});

test('B52: a fast path that is awaited has published; one that the caller did not wait for is made up for', async () => {
  for (const slot of [K, {}]) {
    const { store, clock, texts, relayOf, failing } = world();
    const relay = relayOf();
    const box = outbox(store, { relay, clock });
    const add = (text: string) =>
      store.transact(async (transaction) => (await box.reserve(transaction, slot)).add(message(text)));
    const { afterCommit } = await add('awaited');
    failing.set('awaited', [{ milliseconds: 500 }]);
    const waited = afterCommit();
    await clock.advance(400);
    assert.deepEqual(texts(), []);
    await clock.until(waited);
    assert.deepEqual(texts(), ['awaited']);
    await add('dropped');
    // A row without order is its writer's for 30 s.
    await clock.advance(31_000);
    await relay.sweep({ signal });
    assert.deepEqual(texts(), ['awaited', 'dropped']);
  }
});
