import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualClock } from '../testing/virtual-clock.ts';
import { memoryOutbox } from './memory.ts';
import { outbox, type SlotOptions } from './outbox.ts';

const message = { topic: 'orders', data: Buffer.from('x'), attributes: {} };

test('refuses a slot whose options are misspelt, and writes no row without order', async () => {
  const store = memoryOutbox({ clock: virtualClock() });
  const box = outbox(store);
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [{ sequencekey: 'k' }, /^sequencekey is no option; accepted: sequenceKey \(the nearest\), id$/],
    [{ sequenceKey: null }, /^sequenceKey is null; accepted: a text$/],
    [{ sequenceKey: 'k', id: 5 }, /^id is 5; accepted: a text$/],
    ['k', /^options is "k"; accepted: an object with sequenceKey, id$/],
    [null, /^options is null; accepted: an object with sequenceKey, id$/],
  ];
  for (const [slot, text] of cases) {
    const written = store.transact(async (transaction) =>
      (await box.reserve(transaction, slot as SlotOptions)).add(message),
    );
    await assert.rejects(written, { name: 'ConfigError', code: 'INVALID_OPTION', message: text });
  }
  assert.deepEqual(store.rows(), []);
});

test('refuses what is no transaction of its store', async () => {
  const box = outbox(memoryOutbox({ clock: virtualClock() }));
  for (const [index, wrong] of [undefined, null, 5, 'text', {}].entries()) {
    const refused = { name: 'ConfigError', code: 'INVALID_OPTION', message: /^transaction is / };
    await assert.rejects(box.reserve(wrong as never, { sequenceKey: 'k' }), refused, `case ${index}`);
  }
});
