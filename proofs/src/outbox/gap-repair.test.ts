import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Context } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import type { Message } from '../../../shared/src/message.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import { memoryStreams } from '../../../shared/src/order/memory.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { world } from './world.ts';

const K = { sequenceKey: 'k' };
const { signal } = new AbortController();

test('gap repair publishes what was sent again, what is pending in its turn, and nothing else', async () => {
  const { clock, add, relayOf, store, publisher, failing, texts } = world();
  for (const text of ['a', 'b', 'c']) await add(text, K);
  await relayOf().sweep({ signal });
  for (const text of ['d', 'e']) await add(text, K);
  const { repair } = relay(store, publisher, { clock });
  assert.deepEqual(await repair.republish('k', { from: 2, to: 4 }), [2, 3, 4]);
  assert.deepEqual(texts(), ['a', 'b', 'c', 'b', 'c', 'd', 'e']);
  assert.deepEqual(await repair.republish('k', { from: 6, to: 9 }), []);
  assert.deepEqual(await repair.republish('unknown', { from: 1, to: 9 }), []);
  failing.set('b', ['refused']);
  await assert.rejects(repair.republish('k', { from: 2, to: 3 }), { name: 'TransientError' });
  failing.set('b', ['permanent']);
  assert.deepEqual(await repair.republish('k', { from: 2, to: 3 }), [3]);
});

test('a number that is committed and cannot be published now must not be skipped', async () => {
  const { clock, add, store, publisher, failing, texts } = world();
  for (const text of ['a', 'b']) await add(text, K);
  failing.set('b', ['refused', 'permanent']);
  const { repair } = relay(store, publisher, { clock, log: silent });
  const pending = { name: 'TransientError', code: 'OUTBOX_PENDING' };
  await assert.rejects(repair.republish('k', { from: 1, to: 2 }), pending, 'refused');
  await assert.rejects(repair.republish('k', { from: 1, to: 2 }), pending, 'it backs off');
  await clock.advance(60_000);
  await assert.rejects(repair.republish('k', { from: 2, to: 2 }), pending, 'blocked');
  assert.deepEqual(await repair.republish('k', { from: 1, to: 1 }), [1]);
  assert.deepEqual(texts(), ['a', 'a', 'a']);
});

test('a consumer’s gap is repaired from the outbox: the numbers that the topic lost come, and the stream goes on in order', async () => {
  const { clock, add, relayOf, store, publisher, published } = world();
  for (const text of ['a', 'b', 'c']) await add(text, K);
  await relayOf().sweep({ signal });
  const seen: string[] = [];
  const ship = async (message: Message) => {
    seen.push(message.data.toString());
    return ack();
  };
  const { repair } = relay(store, publisher, { clock });
  const streams = orderedDelivery(memoryStreams({ clock }), {
    clock,
    onGap: 'skip',
    gap: { timeout: '1m', repair },
  });
  const context = (): Context => ({
    consumer: 'shipping',
    source: 's',
    now: () => clock.now(),
    deadline: clock.monotonic() + 60_000,
    signal,
    log: silent,
  });
  const deliver = streams.middleware(ship);
  const sweep = streams.sweep(ship);
  const arrive = (index: number) => {
    const outgoing = published[index];
    assert.ok(outgoing !== undefined);
    const data = Buffer.from(outgoing.data);
    return deliver({ ...outgoing, data, id: String(index), publishTime: new Date(clock.now()) }, context());
  };
  await arrive(0);
  await arrive(2);
  assert.deepEqual(seen, ['a']);
  await clock.advance(60_000);
  const { repaired } = await sweep(context());
  assert.deepEqual([repaired, published.length], [1, 4]);
  await arrive(3);
  assert.deepEqual(seen, ['a', 'b', 'c']);
});
