import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { storeUnavailable } from '../errors.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { memoryStreams } from './memory.ts';
import type { StreamAdmin } from './stream-store.ts';
import { forEachAtMost } from '../async/pool.ts';
import { CONSUMER, made } from '../testing/stream-samples.ts';
import { pagesInTurn } from './sweep.ts';

async function dueStreams(count: number) {
  const clock = virtualClock();
  const store = memoryStreams({ clock });
  for (let index = 0; index < count; index += 1)
    await made(store, { readyAt: 1_000 + index }, [], `k${String(index).padStart(3, '0')}`);
  return { clock, store };
}

/** The keys that a pass answers, which ends after `most` of them. */
async function pass(go: ReturnType<typeof pagesInTurn>, most = Infinity): Promise<string[]> {
  const found: string[] = [];
  for await (const { ref } of go(CONSUMER, () => found.length >= most)) found.push(ref.key);
  return found;
}

test('a pass has every stream once, whatever the pages', async () => {
  const { store } = await dueStreams(250);
  const found = await pass(pagesInTurn(store, { state: 'due' }));
  assert.deepEqual([found.length, new Set(found).size, found[0], found.at(-1)], [250, 250, 'k000', 'k249']);
});

test('streams that stay due starve no other: each pass goes on where the last one had to stop', async () => {
  const { store } = await dueStreams(250);
  const go = pagesInTurn(store, { state: 'due' });
  const found: string[] = [];
  // 40 is no page's end: a pass ends in the middle of one.
  for (let round = 0; round < 7; round += 1) found.push(...(await pass(go, 40)));
  assert.equal(new Set(found).size, 250);
  assert.deepEqual(found.slice(250), found.slice(0, 30), 'then it begins again');
});

test('a pass that began in the middle goes on to what is before, and has nothing twice', async () => {
  const { store } = await dueStreams(250);
  const go = pagesInTurn(store, { state: 'due' });
  await pass(go, 130);
  const second = await pass(go);
  assert.deepEqual([second.length, new Set(second).size, second[0]], [250, 250, 'k130']);
  assert.equal((await pass(go))[0], 'k000');
});

test('a stream that is due again has its turn again, also where no pass comes to the end of a page', async () => {
  let time = 0;
  const due = new Map<string, number>();
  const comes = (key: string): void => void due.set(key, (time += 1));
  const list: StreamAdmin['list'] = async (consumer, { limit }) => {
    const keys = [...due].toSorted(([, left], [, right]) => left - right).map(([key]) => key);
    const streams = keys
      .slice(0, limit)
      .map((key) => ({ ref: { consumer, source: '', key }, error: 'none' }));
    return { streams, ...(keys.length > limit && { next: 'more' }) };
  };
  const go = pagesInTurn({ list }, { state: 'due' });
  comes('again');
  for (let index = 0; index < 150; index += 1) comes(`k${index}`);
  const turns: number[] = [];
  for (let round = 0; round < 40; round += 1) {
    for (const key of await pass(go, 10)) {
      due.delete(key);
      if (key !== 'again') comes(`${key}+`);
      else turns.push(round);
    }
    if (!due.has('again')) comes('again');
  }
  assert.deepEqual(turns, [0, 16, 32]);
});

test('a list that fails in the middle is gone on with', async () => {
  const { store } = await dueStreams(150);
  let lists = 0;
  const failing: Pick<StreamAdmin, 'list'> = {
    async list(consumer, query) {
      lists += 1;
      if (lists === 2) throw storeUnavailable('no answer');
      return store.list(consumer, query);
    },
  };
  const go = pagesInTurn(failing, { state: 'due' });
  await assert.rejects(pass(go), { code: 'STORE_UNAVAILABLE' });
  assert.equal((await pass(go))[0], 'k100');
});

test('passes of two consumers have places of their own', async () => {
  const { store } = await dueStreams(150);
  const go = pagesInTurn(store, { state: 'due' });
  await pass(go, 120);
  for await (const _ of go('another', () => false)) assert.fail('it has no streams');
  assert.equal((await pass(go))[0], 'k120');
});

test('a slow stream keeps one worker only, and a rejection comes once all have ended', async () => {
  const { clock, store } = await dueStreams(250);
  const done: string[] = [];
  const work = forEachAtMost(
    4,
    pagesInTurn(store, { state: 'due' })(CONSUMER, () => false),
    async ({ ref }) => {
      if (ref.key === 'k000') await sleep(clock, 60_000);
      done.push(ref.key);
    },
  );
  await clock.advance(0);
  assert.equal(done.length, 249);
  await clock.until(work);
  assert.equal(done.at(-1), 'k000');
  let active = 0;
  const failing = forEachAtMost(
    4,
    pagesInTurn(store, { state: 'due' })(CONSUMER, () => false),
    async ({ ref }) => {
      active += 1;
      await sleep(clock, 10);
      active -= 1;
      if (ref.key === 'k001') throw new Error('made for a test');
    },
  );
  await assert.rejects(clock.until(failing), /made for a test/);
  assert.equal(active, 0);
});
