import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualClock } from '../testing/virtual-clock.ts';
import { payloadStoreContract } from './contract.ts';
import { memoryPayloads } from './memory.ts';

payloadStoreContract('in memory', async () => {
  const clock = virtualClock();
  let offsetMs = 0;
  const now = (): number => clock.now() + offsetMs;
  const store = memoryPayloads({ clock: { ...clock, now } });
  return {
    store,
    now,
    pass: (ms) => void (offsetMs += ms),
    storedBytes: async () => store.storedBytes(),
    close: async () => {},
  };
});

test('a call that fails is not done, or is done without an answer', async () => {
  const store = memoryPayloads({ clock: virtualClock() });
  const content = Buffer.from('content');
  store.failOn(1, 'refused');
  store.failOn(2, 'reply lost');
  await assert.rejects(store.put('o', content, 0), { code: 'STORE_UNAVAILABLE' });
  assert.equal(store.stored(), 0);
  await assert.rejects(store.put('o', content, 0), { code: 'STORE_UNAVAILABLE' });
  assert.equal(store.stored(), 1);
  const ref = await store.put('o', content, 0);
  assert.ok(content.equals(await store.get(ref)));
});
