import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StreamFields } from '../../../shared/src/order/stream-state.ts';
import { CONSUMER, made } from '../../../shared/src/testing/stream-samples.ts';
import { type Visiting, visiting } from './visiting.ts';
import type { Woken } from '../../../shared/src/order/wake.ts';

const nothing = { drained: 0, repaired: 0, skipped: 0 };
const waking = (bed: Visiting, key = 'k', source = 's'): Promise<Woken> =>
  bed.clock.until(bed.wake({ key, source }, bed.context()));

test('a stream that is due is visited, with all that waits for it', async () => {
  const bed = visiting();
  await made(bed.store, { readyAt: bed.clock.now() }, [1, 2]);
  assert.deepEqual(await waking(bed), { ...nothing, kind: 'taken', drained: 2 });
  assert.deepEqual(bed.runs, ['k#1', 'k#2']);
});

test('a wake-up that comes a little early waits; one that comes much too early asks for another', async () => {
  const bed = visiting();
  const dueAt = bed.clock.now() + 2_000;
  await made(bed.store, { attempts: 1, readyAt: dueAt, nextTryAt: dueAt }, [1]);
  assert.deepEqual(await waking(bed), { ...nothing, kind: 'taken', drained: 1 });
  assert.equal(bed.clock.now(), dueAt);
  const later = visiting();
  const at = later.clock.now() + 30_000;
  await made(later.store, { attempts: 1, readyAt: at, nextTryAt: at }, [1]);
  assert.deepEqual(await waking(later), { ...nothing, kind: 'left' });
  assert.deepEqual([later.wakes, later.runs], [[{ key: 'k', atMs: at }], []]);
});

test('a wake-up waits for the next try where that is later than the visit', async () => {
  const bed = visiting();
  const now = bed.clock.now();
  await made(bed.store, { attempts: 1, readyAt: now, nextTryAt: now + 3_000 }, [1]);
  assert.equal((await waking(bed)).kind, 'taken');
  assert.equal(bed.clock.now(), now + 3_000);
});

test('a wake-up does nothing for a stream that is idle, blocked or worked on, and asks for no other', async () => {
  const bed = visiting();
  const now = bed.clock.now();
  const left: Readonly<Record<string, StreamFields>> = {
    idle: { last: 1 },
    blocked: { blocked: { code: 'BAD', text: '', atMs: now } },
    running: { lease: { owner: 'other', lengthMs: 10_000, to: 1 }, readyAt: now + 10_000 },
  };
  for (const [key, fields] of Object.entries(left)) {
    await made(bed.store, fields, [], key);
    assert.deepEqual(await waking(bed, key), { ...nothing, kind: 'left' }, key);
  }
  assert.deepEqual([bed.wakes, bed.runs], [[], []]);
  await bed.clock.advance(10_001);
  assert.equal((await waking(bed, 'running')).kind, 'taken', 'its process died');
});

test('a stream that is unknown, or is another source’s or consumer’s, is said to be unknown', async () => {
  const bed = visiting();
  await made(bed.store, { readyAt: 1 }, [1]);
  assert.equal((await waking(bed, 'another')).kind, 'unknown');
  assert.equal((await waking(bed, 'k', 'another')).kind, 'unknown');
  const other = { ...bed.context(), consumer: 'another' };
  assert.equal((await bed.wake({ key: 'k', source: 's' }, other)).kind, 'unknown');
});

test('where a stream spans all sources, the source of a wake-up is ignored', async () => {
  const bed = visiting({ streamScope: 'consumer' });
  const ref = { consumer: CONSUMER, source: '', key: 'k' };
  const state = bed.store.stateOf(await made(bed.store, { readyAt: 1 }, [], 'other'));
  assert.ok(state !== undefined);
  const patch = { readyAt: 1, commit: 'one' };
  await bed.store.commit(ref, { version: undefined, state }, { patch });
  assert.equal((await waking(bed, 'k', 'whatever')).kind, 'taken');
  assert.equal((await bed.wake({ key: 'k' }, bed.context())).kind, 'left');
});

test('a wake-up closes the gap of its stream as the sweep does', async () => {
  const bed = visiting({ onGap: 'skip', gap: { timeout: '1m' } });
  await made(bed.store, { waitingSince: bed.clock.now(), gapAt: 0 }, [2]);
  assert.deepEqual(await waking(bed), { ...nothing, kind: 'left' });
  await bed.clock.advance(60_000);
  assert.deepEqual(await waking(bed), { kind: 'taken', drained: 1, repaired: 0, skipped: 1 });
  assert.deepEqual(bed.runs, ['k#2']);
});
