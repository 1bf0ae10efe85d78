import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualClock } from '../testing/virtual-clock.ts';
import { payloadRoomContract } from './contract.ts';
import { memoryPayloads } from './memory.ts';

payloadRoomContract('in memory', async () => {
  const clock = virtualClock();
  let offsetMs = 0;
  const now = (): number => clock.now() + offsetMs;
  const room = memoryPayloads({ clock: { ...clock, now } });
  return {
    room,
    now,
    pass: (ms) => void (offsetMs += ms),
    storedBytes: async () => room.storedBytes(),
    close: async () => {},
  };
});

test('a call that fails is not done, or is done without an answer', async () => {
  const room = memoryPayloads({ clock: virtualClock() });
  const content = Buffer.from('content');
  room.failOn(1, 'refused');
  room.failOn(2, 'reply lost');
  await assert.rejects(room.put('o', content, 0), { code: 'STORE_UNAVAILABLE' });
  assert.equal(room.stored(), 0);
  await assert.rejects(room.put('o', content, 0), { code: 'STORE_UNAVAILABLE' });
  assert.equal(room.stored(), 1);
  const ref = await room.put('o', content, 0);
  assert.ok(content.equals(await room.get(ref)));
});
