/**
 * The part of the store's contract that operators and the sweep rest on: lists and counts of streams.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newStream, patchOf } from '../testing/stream-samples.ts';
import { freshStream, type StreamFields } from './stream-state.ts';
import type { ListedState, StreamAdmin, StreamQuery, StreamRef, StreamStore } from './stream-store.ts';

const FRESH = freshStream(1);

export function listContract(store: () => StreamStore & StreamAdmin): void {
  const create = (ref: StreamRef, fields: StreamFields): Promise<string | undefined> =>
    store().commit(ref, { version: undefined, state: FRESH }, { patch: patchOf(fields) });
  const blockedAt = (atMs: number): StreamFields => ({ blocked: { code: 'c', text: '', atMs } });
  const listed = async (
    consumer: string,
    query: Omit<StreamQuery, 'limit'>,
    limit: number,
  ): Promise<string[]> => {
    const found: string[] = [];
    let after: string | undefined;
    for (let pages = 0; pages < 100; pages += 1) {
      const given = { ...query, limit, ...(after !== undefined && { after }) };
      const page = await store().list(consumer, given);
      assert.ok(page.streams.length <= limit);
      found.push(...page.streams.map(({ ref }) => ref.key));
      after = page.next;
      if (after === undefined) return found;
    }
    return assert.fail('the list has no end');
  };

  test('lists have the streams of one state, the oldest first, page by page, and count them', async () => {
    const { consumer, source } = newStream();
    const now = (await store().read({ consumer, source, key: 'a' })).nowMs;
    const made: Record<string, StreamFields> = {
      a: { waitingSince: now - 30_000, gapAt: 0 },
      b: { waitingSince: now - 90_000, gapAt: 0 },
      c: { waitingSince: now - 60_000, gapAt: 0 },
      d: { waitingSince: now - 60_000, gapAt: 0 },
      e: blockedAt(now - 20_000),
      f: blockedAt(now - 40_000),
      g: { readyAt: now - 10_000 },
      h: { readyAt: now + 60_000 },
      i: { readyAt: now - 30_000 },
      j: { readyAt: now - 20_000 },
      k: { readyAt: null },
    };
    for (const [key, fields] of Object.entries(made)) await create({ consumer, source, key }, fields);
    await create(newStream(), {
      ...blockedAt(now - 50_000),
      readyAt: now - 90_000,
      waitingSince: now - 90_000,
    });
    const waiting = await listed(consumer, { state: 'waiting' }, 1);
    assert.deepEqual([waiting[0], waiting.slice(1, 3).toSorted(), waiting[3]], ['b', ['c', 'd'], 'a']);
    const old = await listed(consumer, { state: 'waiting', forMs: 45_000 }, 2);
    assert.deepEqual([old[0], old.slice(1).toSorted()], ['b', ['c', 'd']]);
    assert.deepEqual(await listed(consumer, { state: 'blocked' }, 1), ['f', 'e']);
    for (const limit of [1, 2, 10])
      assert.deepEqual(await listed(consumer, { state: 'due' }, limit), ['i', 'j', 'g']);
    assert.deepEqual((await listed(consumer, { state: 'any' }, 3)).toSorted(), Object.keys(made));
    const states: readonly ListedState[] = ['any', 'waiting', 'blocked', 'due'];
    const counts = await Promise.all(states.map((state) => store().count(consumer, state)));
    assert.deepEqual(counts, [11, 4, 2, 3]);
    const [first] = (await store().list(consumer, { state: 'blocked', limit: 1 })).streams;
    assert.ok(first !== undefined && 'state' in first);
    assert.deepEqual([first.state.blocked?.atMs, first.ref], [now - 40_000, { consumer, source, key: 'f' }]);
    assert.equal((await store().read(first.ref)).version, first.version);
  });

  test('many due streams come in one order whatever the pages, each once', async () => {
    const { consumer, source } = newStream();
    const now = (await store().read({ consumer, source, key: 'a' })).nowMs;
    const keys = Array.from({ length: 90 }, (_, index) => `k${String(index).padStart(2, '0')}`);
    await Promise.all(
      keys.map((key, index) => create({ consumer, source, key }, { readyAt: now - 90_000 + index })),
    );
    for (const limit of [7, 40, 500]) assert.deepEqual(await listed(consumer, { state: 'due' }, limit), keys);
    assert.equal(await store().count(consumer, 'due'), 90);
  });

  test('streams of all sources are listed, and streams of one key under two sources are two', async () => {
    const ref = newStream();
    const now = (await store().read(ref)).nowMs;
    const other = { ...ref, source: 'another source' };
    // By more than a list may be behind the store’s clock.
    await create(ref, { last: 3, readyAt: now - 12_000 });
    await create(other, { last: 7, readyAt: now - 11_000 });
    const { streams } = await store().list(ref.consumer, { state: 'due', limit: 10 });
    assert.deepEqual(
      streams.map((one) => ['state' in one && one.state.last, one.ref]),
      [
        [3, ref],
        [7, other],
      ],
    );
  });
}
