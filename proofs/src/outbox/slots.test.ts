/**
 * What a transaction's function may do with its slot: run again, decide otherwise, catch what `add` throws, be rolled
 * back.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MemoryOutboxTransaction } from '../../../shared/src/outbox/memory.ts';
import { type Added, outbox, type OutboxSlot } from '../../../shared/src/outbox/outbox.ts';
import { message, world } from './world.ts';

const K = { sequenceKey: 'k' };
const { signal } = new AbortController();

for (const slot of [K, {}]) {
  const name = slot === K ? 'with a key' : 'without order';

  test(`${name}: rows of a run that was not committed are never published, whatever its caller keeps`, async () => {
    const { clock, store, relayOf, texts } = world();
    const relay = relayOf();
    const box = outbox(store, { clock, relay });
    let added: Added | undefined;
    let runs = 0;
    const work = async (transaction: MemoryOutboxTransaction): Promise<void> => {
      const before = await transaction.get('own');
      if (before === 'done') return;
      const reserved = await box.reserve(transaction, slot);
      added = reserved.add(message('a'));
      runs += 1;
      // Another transaction comes between, which makes this one needless.
      if (runs === 1) await store.transact(async (other) => other.set('own', 'done'));
    };
    await clock.until(store.transact(work));
    await added?.afterCommit();
    await relay.sweep({ signal });
    assert.deepEqual([runs, texts(), store.rows().length], [1, [], 0]);

    const given = store.transact(async (transaction) => {
      added = (await box.reserve(transaction, slot)).add(message('b'));
      throw new Error('rolled back');
    });
    await assert.rejects(given, /rolled back/);
    await added?.afterCommit();
    assert.deepEqual(texts(), []);
  });

  test(`${name}: a slot that is reserved again in a run replaces the first, which refuses`, async () => {
    const { clock, store } = world();
    const box = outbox(store, { clock });
    let slots: OutboxSlot[] = [];
    const both = store.transact(async (transaction) => {
      slots = [await box.reserve(transaction, slot), await box.reserve(transaction, slot)];
      return slots.map((one, index) => one.add(message(`${index}`)));
    });
    await assert.rejects(both, { name: 'ConfigError', code: 'SLOT_USED' });
    assert.equal(store.rows().length, 0);
    const second = await store.transact(async (transaction) => {
      await box.reserve(transaction, slot);
      return (await box.reserve(transaction, slot)).add(message('a'));
    });
    assert.deepEqual([second.isRepeat, store.rows().length], [false, 1]);
  });

  test(`${name}: add that was refused for its message has written nothing and may be called again`, async () => {
    const { clock, store, relayOf, published } = world();
    const box = outbox(store, { clock, relay: relayOf() });
    const added = await store.transact(async (transaction) => {
      const reserved = await box.reserve(transaction, slot);
      const large = { ...message('large'), data: Buffer.alloc(1_100_000) };
      assert.throws(() => reserved.add(message('a'), large), { code: 'LIMIT_EXCEEDED' });
      return reserved.add({ ...message(''), attributes: { without: 'data' } });
    });
    await added.afterCommit();
    assert.deepEqual(
      published.map(({ data }) => data.length),
      [0],
    );
    assert.deepEqual([added.numbers, store.rows().length], [slot === K ? [1] : [], 1]);
  });
}

test('a slot that is reserved and not used takes no number and delays no other', async () => {
  const { clock, store, add, relayOf, texts } = world();
  const box = outbox(store, { clock });
  await store.transact(async (transaction) => {
    await box.reserve(transaction, K);
    transaction.set('own', 1);
  });
  assert.deepEqual((await add('a', K)).numbers, [1]);
  await relayOf().sweep({ signal });
  assert.deepEqual(texts(), ['a']);
});

test('one id names another call for each sequenceKey, and for none', async () => {
  const { add, store } = world();
  for (const slot of [{ sequenceKey: 'a' }, { sequenceKey: 'b' }, {}]) {
    assert.equal((await add('x', { ...slot, id: 'one' })).isRepeat, false);
    assert.equal((await add('x', { ...slot, id: 'one' })).isRepeat, true);
  }
  assert.equal(store.rows().length, 3);
});
