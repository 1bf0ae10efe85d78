import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { storeUnavailable, TransientError } from '../../../shared/src/errors.ts';
import type { MemoryStreams } from '../../../shared/src/order/memory.ts';
import type { ListedStream } from '../../../shared/src/order/stream-store.ts';
import { CONSUMER, made } from '../../../shared/src/testing/stream-samples.ts';
import { visiting } from './visiting.ts';
import type { VisitStream } from '../../../shared/src/order/mailbox.ts';

const NOTHING = { due: 0, done: 0, isWhole: true, drained: 0, failed: 0, repaired: 0, skipped: 0 };

async function due(store: MemoryStreams, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1)
    await made(store, { readyAt: 1 + index }, [1, 2], `k${index}`);
}

test('every stream that is due is visited, and what cannot be read hides no other, however many there are', async () => {
  const unreadable = Array.from({ length: 250 }, (_, index): ListedStream => {
    const error = new TransientError('UNREADABLE_STATE', 'written by a later version');
    return { ref: { consumer: CONSUMER, source: 's', key: `unreadable ${index}` }, error };
  });
  const wrap = (store: MemoryStreams): MemoryStreams => ({
    ...store,
    async list(consumer, query) {
      if (query.state !== 'due') return store.list(consumer, query);
      const from = Number(query.after ?? 0);
      const all = [...unreadable, ...(await store.list(consumer, { state: 'due', limit: 1_000 })).streams];
      const streams = all.slice(from, from + query.limit);
      return { streams, ...(all.length > from + query.limit && { next: String(from + query.limit) }) };
    },
  });
  const bed = visiting({}, { wrap });
  await due(bed.store, 3);
  assert.deepEqual(await bed.sweep(bed.context()), {
    ...NOTHING,
    due: 253,
    done: 3,
    drained: 6,
    failed: 250,
  });
  assert.deepEqual(bed.runs, ['k0#1', 'k0#2', 'k1#1', 'k1#2', 'k2#1', 'k2#2']);
  const [line] = bed.lines;
  assert.deepEqual(
    [line?.text, line?.['code']],
    ['in order: a stream was not swept; the next sweep tries again', 'UNREADABLE_STATE'],
  );
});

test('streams that are idle, blocked, waiting, or due later are left alone', async () => {
  const bed = visiting();
  const blocked = { code: 'BAD', text: '', atMs: 1 };
  await made(bed.store, {}, [], 'idle');
  await made(bed.store, { blocked }, [1], 'blocked');
  await made(bed.store, { waitingSince: bed.clock.now(), gapAt: 0 }, [3], 'waiting');
  await made(bed.store, { readyAt: bed.clock.now() + 1 }, [1], 'later');
  assert.deepEqual(await bed.sweep(bed.context()), NOTHING);
});

test('sweeps at the same time take each stream once', async () => {
  const bed = visiting();
  await due(bed.store, 40);
  const results = await Promise.all([1, 2, 3].map(() => bed.sweep(bed.context())));
  const sum = (field: 'done' | 'drained'): number => results.reduce((all, one) => all + one[field], 0);
  assert.deepEqual([sum('done'), sum('drained')], [40, 80]);
});

test('a sweep visits no stream after its deadline or after it is aborted, and the next one goes on with the others', async () => {
  for (const end of ['deadline', 'abort'] as const) {
    const over = new AbortController();
    const visited: string[] = [];
    const visit: VisitStream = async (ref) => {
      visited.push(ref.key);
      await sleep(bed.clock, 1_000);
      if (end === 'abort' && visited.length === 16) over.abort();
      return { taken: true, drained: 0 };
    };
    const bed = visiting({}, { visit });
    await due(bed.store, 200);
    const context = bed.context(end === 'deadline' ? 1_500 : 60_000);
    await bed.clock.until(bed.sweep({ ...context, signal: over.signal }));
    const first = visited.length;
    assert.ok(first >= 8 && first < 40, `${end}: ${first}`);
    // None of them is done: only because the sweep remembers where it ended does it not begin with them again.
    await bed.clock.until(bed.sweep(bed.context(200_000)));
    assert.deepEqual(new Set(visited.slice(0, 200)).size, 200, end);
  }
});

test('a visit that fails is counted and logged, and the others go on', async () => {
  const visit: VisitStream = async ({ key }) => {
    if (key === 'k1') throw storeUnavailable('no answer');
    return { taken: key !== 'k2', drained: 1 };
  };
  const bed = visiting({}, { visit });
  await due(bed.store, 4);
  assert.deepEqual(await bed.sweep(bed.context()), { ...NOTHING, due: 4, done: 2, drained: 3, failed: 1 });
  assert.deepEqual(
    bed.lines.map(({ level, sequenceKey, code }) => [level, sequenceKey, code]),
    [['warn', 'k1', 'STORE_UNAVAILABLE']],
  );
});

test('a store that cannot be asked for what is due rejects; one that cannot be asked for gaps does not', async () => {
  const failing =
    (which: string) =>
    (store: MemoryStreams): MemoryStreams => ({
      ...store,
      async list(consumer, query) {
        if (query.state === which) throw storeUnavailable('no answer');
        return store.list(consumer, query);
      },
    });
  const down = visiting({ onGap: 'skip' }, { wrap: failing('due') });
  await assert.rejects(down.sweep(down.context()), { code: 'STORE_UNAVAILABLE' });
  const half = visiting({ onGap: 'skip' }, { wrap: failing('waiting') });
  await due(half.store, 1);
  assert.deepEqual(await half.sweep(half.context()), {
    ...NOTHING,
    due: 1,
    done: 1,
    isWhole: false,
    drained: 2,
    failed: 1,
  });
  assert.ok(half.lines.some(({ level, text }) => level === 'error' && text.includes('gaps were not closed')));
});

test('every sweep reports the stream that has waited longest, if longer than the timeout, with its number', async () => {
  const bed = visiting({ gap: { timeout: '2m' } });
  const since = bed.clock.now();
  await made(bed.store, { last: 1, waitingSince: since, gapAt: 1 }, [5]);
  await bed.clock.advance(2 * 60_000 - 1);
  await bed.sweep(bed.context());
  assert.deepEqual(bed.lines, [], 'a younger gap is not reported');
  await bed.clock.advance(5_001);
  for (const _ of [1, 2]) await bed.sweep(bed.context());
  const line = {
    level: 'warn',
    text: 'in order: a stream has waited for a number for longer than the gap timeout',
    event: 'order_gap_old',
    consumer: CONSUMER,
    source: 's',
    sequenceKey: 'k',
    missing: 2,
    waitedSeconds: 125,
  };
  assert.deepEqual(bed.lines, [line, line]);
});
