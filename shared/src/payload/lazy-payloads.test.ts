import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lazyLedger } from '../schedules/lazy-ledger.ts';
import { memoryLedger } from '../schedules/memory.ts';
import { systemClock } from '../clock.ts';
import { lazyPayloads } from './lazy-payloads.ts';
import { memoryPayloads } from './memory.ts';

test('a lazy store is loaded by its first call, once for calls at the same time', async () => {
  let loads = 0;
  const store = lazyPayloads(async () => {
    loads += 1;
    return memoryPayloads({ clock: systemClock() });
  });
  assert.equal(loads, 0);
  const content = Buffer.from('content');
  const [ref] = await Promise.all([store.put('owner', content, 0), store.put('other', content, 0)]);
  assert.deepEqual(Buffer.from(await store.get(ref)), content);
  await store.done(ref);
  await assert.rejects(store.get(ref), { code: 'PAYLOAD_DONE' });
  assert.deepEqual(await store.sweep({ signal: new AbortController().signal }), {
    due: 0,
    done: 0,
    failed: 0,
    isWhole: true,
  });
  assert.equal(loads, 1);
});

test('a lazy store whose load failed is loaded again by the next call', async () => {
  let loads = 0;
  const store = lazyPayloads(async () => {
    loads += 1;
    if (loads === 1) throw new Error('not now');
    return memoryPayloads({ clock: systemClock() });
  });
  await assert.rejects(store.put('owner', Buffer.from('x'), 0), /not now/);
  await store.put('owner', Buffer.from('x'), 0);
  assert.equal(loads, 2);
});

test('a lazy ledger is loaded by its first call, also after a load that failed, and answers as the ledger does', async () => {
  let loads = 0;
  const memory = memoryLedger({ clock: systemClock() });
  const ledger = lazyLedger(async () => {
    loads += 1;
    if (loads === 1) throw new Error('not now');
    return memory;
  });
  assert.deepEqual([ledger.times, ledger.shards], [memory.times, memory.shards]);
  await assert.rejects(ledger.read('id'), /not now/);
  const found = await ledger.read('id');
  assert.equal(found.entry, undefined);
  const changed = await ledger.change('id', () => ({ answer: 'left as it is' }));
  assert.equal(changed.answer, 'left as it is');
  assert.deepEqual((await ledger.due('consumer', 0, 5)).items, []);
  assert.equal(await ledger.pending('consumer'), 0);
  const listed = await ledger.list({ consumer: 'consumer', source: 'source', prefix: '', limit: 5 });
  assert.deepEqual(listed.items, []);
  assert.equal(loads, 2);
});
