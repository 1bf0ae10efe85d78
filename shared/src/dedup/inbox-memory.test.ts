import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualClock } from '../testing/index.ts';
import { claimStoreContract } from './contract.ts';
import { inboxContract } from './inbox-contract.ts';
import { memoryInbox } from './inbox-memory.ts';

claimStoreContract('the inbox in memory', async () => {
  const clock = virtualClock();
  return { store: memoryInbox({ clock }), pass: (ms) => clock.advance(ms), close: async () => {} };
});

inboxContract('memory', async () => {
  const clock = virtualClock();
  const store = memoryInbox({ clock });
  return {
    store,
    clock,
    get: async (transaction, id) => Number((await transaction.get(id)) ?? 0),
    set: (transaction, id, value) => transaction.set(id, value),
    read: async (id) => Number(store.peek(id) ?? 0),
    pass: (ms) => clock.advance(ms),
    until: (done) => clock.until(done),
    close: async () => {},
  };
});

test('a transaction in memory reads before it writes, and sees what is committed', async () => {
  const store = memoryInbox({ clock: virtualClock() });
  store.put('a', 1);
  const failing = store.transact(async (transaction) => {
    assert.equal(await transaction.get('a'), 1);
    transaction.delete('a');
    await transaction.get('b');
    throw new Error('unreachable');
  });
  await assert.rejects(failing, /reads before it writes/);
  assert.equal(store.peek('a'), 1);
});
