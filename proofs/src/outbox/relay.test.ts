import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import type { RelayStore } from '../../../shared/src/outbox/outbox-store.ts';
import { memoryTable } from '../../../shared/src/outbox/memory-table.ts';
import { outbox } from '../../../shared/src/outbox/outbox.ts';
import { message, world } from './world.ts';

const K = { sequenceKey: 'k' };
const { signal } = new AbortController();

test('B1: rows that lay for longer than the lag, because every relay was down, are published', async () => {
  const { clock, add, relayOf, store, texts } = world();
  await relayOf().sweep({ signal });
  const bound = await store.bound();
  assert.ok(bound > 0);
  await add('a', K);
  await add('b');
  await clock.advance(3_600_000);
  await relayOf().sweep({ signal });
  assert.deepEqual(texts().toSorted(), ['a', 'b']);
});

test('B1: the bound never passes a row that is pending, and never moves back', async () => {
  const { clock, add, relayOf, store, failing, texts } = world();
  const relay = relayOf();
  await relay.sweep({ signal });
  await clock.advance(600_000);
  failing.set(
    'a',
    Array.from({ length: 9 }, () => 'refused' as const),
  );
  await add('a', K);
  // Its process has the row for longer than all passes take.
  await add('mine');
  const held = store.rows()[1]?.row.id ?? '';
  await store.claim(held, 'me', 86_400_000);
  const created = clock.now();
  for (let pass = 0; pass < 9; pass += 1) {
    await clock.advance(600_000);
    const before = await store.bound();
    await relay.sweep({ signal });
    const bounds = [await store.bound(), created];
    assert.ok((bounds[0] ?? 0) >= before && (bounds[0] ?? 0) <= created, bounds.join());
  }
  await store.markSent([held]);
  await clock.advance(600_000);
  await relay.sweep({ signal });
  assert.deepEqual(texts(), ['a']);
  const after = await store.bound();
  assert.equal(after, clock.now() - 300_000);
});

test('B2: a blocked stream with more than a page of the oldest rows hides no other stream', async () => {
  const { add, relayOf, failing, texts } = world();
  failing.set('poison', ['permanent']);
  await add('poison', K);
  for (let row = 0; row < 250; row += 1) await add(`behind ${row}`, K);
  await add('other', { sequenceKey: 'b' });
  await add('without order');
  const relay = relayOf();
  const first = await relay.sweep({ signal });
  assert.deepEqual(texts().toSorted(), ['other', 'without order']);
  assert.deepEqual([first.due, first.done, first.blocked, first.isWhole], [253, 2, 1, true]);
});

test('B3: a transaction whose commit was applied and whose reply was lost has one number and one row', async () => {
  let lost = false;
  const { clock, store, add } = world({
    async network(request, send) {
      const answer = await send();
      if (request !== 'commit' || lost) return answer;
      lost = true;
      throw new Error('reply lost');
    },
  });
  const added = await clock.until(add('a', K));
  assert.deepEqual([lost, added.numbers, added.isRepeat, store.rows().length], [true, [1], true, 1]);
  assert.deepEqual((await add('b', K)).numbers, [2]);
});

test('B4: the fast path of a late row publishes those before it first', async () => {
  const { store, clock, relayOf, add, texts } = world();
  const box = outbox(store, { clock, relay: relayOf() });
  await add('c0', K);
  await add('c1', K);
  const added = await store.transact(async (transaction) =>
    (await box.reserve(transaction, K)).add(message('c2')),
  );
  await added.afterCommit();
  assert.deepEqual(texts(), ['c0', 'c1', 'c2']);
});

test('B4: the fast path does nothing while another relay has the key, and that relay sees its row', async () => {
  const { store, clock, relayOf, add, failing, texts } = world();
  failing.set('a', [{ milliseconds: 2_000 }]);
  await add('a', K);
  const pass = relayOf().sweep({ signal });
  await clock.advance(1_000);
  const box = outbox(store, { clock, relay: relayOf() });
  const added = await store.transact(async (transaction) =>
    (await box.reserve(transaction, K)).add(message('b')),
  );
  await added.afterCommit();
  assert.deepEqual(texts(), []);
  await clock.until(pass);
  assert.deepEqual(texts(), ['a', 'b']);
});

test('B5: one publish is outstanding for each key, and keys do not wait for each other', async () => {
  const { clock, relayOf, add, failing, texts, mostOutstanding } = world();
  for (const text of ['a', 'b', 'c']) await add(text, K);
  await add('x', { sequenceKey: 'other' });
  failing.set('a', [{ milliseconds: 5_000 }]);
  await clock.until(relayOf().sweep({ signal }));
  assert.deepEqual(texts(), ['x', 'a', 'b', 'c']);
  assert.equal(mostOutstanding(), 1);
});

test('B6: rows are stamped and the bound is moved by the store’s clock, whatever the processes’ clocks say', async () => {
  const { clock, store, relayOf, texts } = world();
  for (const skewMs of [-240_000, 240_000, 86_400_000]) {
    const skewed = { ...clock, now: () => clock.now() + skewMs };
    const relay = relayOf({ clock: skewed });
    await relay.sweep({ signal });
    assert.ok((await store.bound()) <= clock.now() - 300_000);
    const box = outbox(store, { clock: skewed });
    await store.transact(async (transaction) =>
      (await box.reserve(transaction, K)).add(message(`${skewMs}`)),
    );
    await clock.advance(700_000);
    await relay.sweep({ signal });
  }
  assert.deepEqual(texts(), ['-240000', '240000', '86400000']);
});

test('B7: a publish of unknown outcome ends the run; its row is the first of the next', async () => {
  const { clock, store, relayOf, add, failing, texts } = world();
  for (const text of ['a', 'b', 'c']) await add(text, K);
  failing.set('b', ['refused']);
  const relay = relayOf();
  const first = await relay.sweep({ signal });
  assert.deepEqual([texts(), first.done, first.failed], [['a'], 1, 1]);
  const ref = await store.streamOf('k');
  assert.equal(ref && (await store.readStream(ref)).state?.sent, 1);
  await relay.sweep({ signal });
  assert.deepEqual(texts(), ['a'], 'it backs off');
  await clock.advance(1_000);
  await relay.sweep({ signal });
  assert.deepEqual(texts(), ['a', 'b', 'c']);
});

test('a relay on a machine that was suspended publishes nothing under the lease that it had', async () => {
  const { clock, add, relayOf, publisher, texts } = world();
  for (const text of ['a', 'b', 'c']) await add(text, K);
  const { publish } = publisher;
  let isFirst = true;
  Object.assign(publisher, {
    publish: async (...args: Parameters<typeof publish>) => {
      const id = await publish(...args);
      if (!isFirst) return id;
      isFirst = false;
      clock.suspend(61_000);
      await relayOf().sweep({ signal });
      return id;
    },
  });
  await relayOf().sweep({ signal });
  assert.deepEqual(texts(), ['a', 'a', 'b', 'c'], 'one copy of what was on its way, and none after it');
});

test('a relay that was suspended while it claimed a row without order does not publish it', async () => {
  const { clock, add, store, relayOf, texts } = world();
  await add('a');
  await clock.advance(60_000);
  const asleep: RelayStore = {
    ...store,
    async claim(...args) {
      const claimed = await store.claim(...args);
      clock.suspend(61_000);
      await relayOf().sweep({ signal });
      return claimed;
    },
  };
  await relayOf({}, asleep).sweep({ signal });
  assert.deepEqual(texts(), ['a'], 'another relay has published it');
});

test('B37: a relay that stalls past its lease is not recorded; copies have the row’s dedupId', async () => {
  const { clock, store, relayOf, add, published, texts } = world();
  for (const text of ['a', 'b']) await add(text, K);
  const stalled: RelayStore = {
    ...store,
    async writeStream(ref, version, state, sent) {
      if (sent.length > 0) await sleep(clock, 200_000);
      return store.writeStream(ref, version, state, sent);
    },
  };
  const slow = relayOf({}, stalled).sweep({ signal });
  await clock.advance(61_000);
  await relayOf().sweep({ signal });
  await clock.until(slow);
  assert.deepEqual(texts(), ['a', 'b', 'a', 'b']);
  const ids = published.map(({ attributes }) => attributes['dedupId']);
  assert.deepEqual([ids[0], ids[1]], [ids[2], ids[3]]);
  const ref = await store.streamOf('k');
  assert.deepEqual(ref && (await store.readStream(ref)).state?.sent, 2);
});

test('B37: a row that fails again and again waits longer each time, up to the limit', async () => {
  const { clock, relayOf, add, failing, store } = world();
  await add('a', K);
  failing.set(
    'a',
    Array.from({ length: 12 }, () => 'refused' as const),
  );
  const relay = relayOf();
  const ref = (await store.streamOf('k')) ?? { key: '', epoch: '' };
  const pauses: number[] = [];
  for (let round = 0; round < 9; round += 1) {
    await relay.sweep({ signal });
    const { state, nowMs } = await store.readStream(ref);
    pauses.push((state?.nextTryMs ?? 0) - nowMs);
    await clock.advance(pauses.at(-1) ?? 0);
  }
  assert.deepEqual(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
});

test('a poison row blocks its stream, visibly, until an operator resumes it', async () => {
  const { relayOf, add, failing, texts } = world();
  failing.set('bad', ['permanent']);
  for (const text of ['a', 'bad', 'c']) await add(text, K);
  const relay = relayOf();
  await relay.sweep({ signal });
  await relay.sweep({ signal });
  assert.deepEqual(texts(), ['a']);
  const { streams } = await relay.listFailures();
  assert.deepEqual(
    streams.map(({ ref, blocked, sent }) => [ref.key, blocked, sent]),
    [['k', { number: 2, code: 'PUBLISH_REFUSED', text: 'never' }, 1]],
  );
  assert.equal(await relay.resume('k'), true);
  await relay.sweep({ signal });
  assert.deepEqual(texts(), ['a', 'bad', 'c']);
  assert.deepEqual([await relay.resume('k'), await relay.resume('unknown')], [false, false]);
  assert.deepEqual((await relay.listFailures()).streams, []);
});

test('a poison row, or one that an operator deleted, can be skipped: its stream goes on behind it', async () => {
  const table = memoryTable();
  const { clock, relayOf, add, failing, texts, store } = world({ table });
  failing.set('bad', ['permanent']);
  for (const text of ['a', 'bad', 'c', 'gone', 'e']) await add(text, K);
  table.remove(`row/${store.rows()[3]?.row.id}`);
  const relay = relayOf();
  assert.equal(await relay.skip('k'), undefined, 'nothing is known yet');
  await relay.sweep({ signal });
  assert.equal(await relay.skip('k'), 2);
  await relay.sweep({ signal });
  await clock.advance(60_000);
  assert.deepEqual(texts(), ['a', 'c'], 'it waits visibly at what is missing');
  assert.equal(await relay.skip('k'), 4);
  await relay.sweep({ signal });
  assert.deepEqual(texts(), ['a', 'c', 'e']);
  assert.deepEqual([await relay.skip('k'), await relay.skip('unknown')], [undefined, undefined]);
});

test('a row without order that can never be published is set aside, and can be put back', async () => {
  const { relayOf, add, failing, texts, store } = world();
  failing.set('bad', ['permanent']);
  await add('bad');
  await add('good');
  const relay = relayOf();
  await relay.sweep({ signal });
  assert.deepEqual(texts(), ['good']);
  const [failed] = (await relay.listFailures()).rows;
  assert.equal(failed?.code, 'PUBLISH_REFUSED');
  await relay.reopen(failed.id);
  await relay.sweep({ signal });
  assert.deepEqual(texts(), ['good', 'bad']);
  assert.ok(store.rows().every(({ state }) => state === 'sent'));
});

test('a row without order belongs to its writer for 30 s, then to any relay', async () => {
  const { clock, store, relayOf, texts } = world();
  const box = outbox(store, { clock, relay: relayOf() });
  await store.transact(async (transaction) => (await box.reserve(transaction)).add(message('a')));
  await clock.advance(29_000);
  await relayOf().sweep({ signal });
  assert.deepEqual(texts(), []);
  await clock.advance(1_000);
  await relayOf().sweep({ signal });
  assert.deepEqual(texts(), ['a']);
});

test('fast paths of one process share runs, and each resolves with its row published', async () => {
  const { clock, store, relayOf, failing, texts, mostOutstanding } = world();
  const box = outbox(store, { clock, relay: relayOf() });
  failing.set('0', [{ milliseconds: 1_000 }]);
  let taken = 0;
  const { writeStream } = store;
  Object.assign(store, {
    writeStream: (...args: Parameters<typeof writeStream>) => {
      if (args[2].owner !== undefined && args[3].length === 0) taken += 1;
      return writeStream(...args);
    },
  });
  const send = async (text: string): Promise<boolean> => {
    const added = await store.transact(async (transaction) =>
      (await box.reserve(transaction, K)).add(message(text)),
    );
    await added.afterCommit();
    return texts().includes(text);
  };
  const first = send('0');
  await clock.advance(500);
  const later: Promise<boolean>[] = [];
  for (let n = 1; n < 20; n += 1) {
    later.push(send(String(n)));
    await clock.advance(1);
  }
  assert.ok((await clock.until(Promise.all([first, ...later]))).every(Boolean));
  assert.deepEqual(
    texts(),
    Array.from({ length: 20 }, (_, n) => String(n)),
  );
  assert.ok(taken <= 3, `the key was taken ${taken} times`);
  assert.equal(mostOutstanding(), 1);
});

test('the loop survives failures of the store, and ends with its signal', async () => {
  let isDown = true;
  const { clock, add, relayOf, texts } = world({
    network: async (request, send) => {
      if (isDown && request === 'pending') throw new Error('down');
      return send();
    },
  });
  await add('a', K);
  const controller = new AbortController();
  const run = relayOf({ interval: '5s' }).run(controller.signal);
  await clock.advance(20_000);
  isDown = false;
  await clock.advance(5_000);
  assert.deepEqual(texts(), ['a']);
  await add('b', K);
  await clock.advance(5_000);
  controller.abort();
  await clock.until(run);
  assert.deepEqual(texts(), ['a', 'b']);
});

test('a pass that runs out of time leaves the rest, and the bound below it', async () => {
  const { clock, add, relayOf, store, failing, texts } = world();
  for (let row = 0; row < 30; row += 1) await add(`${row}`, { sequenceKey: `k${row}` });
  for (let row = 0; row < 30; row += 1) failing.set(`${row}`, [{ milliseconds: 1_000 }]);
  const created = clock.now();
  await clock.advance(900_000);
  const { isWhole, done: published } = await clock.until(
    relayOf().sweep({ signal, deadline: clock.monotonic() + 1_500 }),
  );
  assert.deepEqual([isWhole, published], [false, 16]);
  assert.ok((await store.bound()) <= created);
  await clock.until(relayOf().sweep({ signal }));
  assert.equal(new Set(texts()).size, 30);
});
