import assert from 'node:assert/strict';
import { test } from 'node:test';
import { registerSdk } from '../telemetry/sdk.ts';
import { outbox } from '../../../shared/src/outbox/outbox.ts';
import { message, world } from './world.ts';

const { signal } = new AbortController();

test('rows published and failed, their lag, streams that are blocked and the oldest row are measured, without a key or a row in any attribute', async (t) => {
  const sdk = registerSdk();
  t.after(() => sdk.close());
  /** Collected once: a gauge that was not set since the last collection is not there. */
  const collected = async () => {
    const points = await sdk.points();
    return (name: string) =>
      points
        .filter((point) => point.name === `pubsub_guarantees.outbox.${name}`)
        .map(({ attributes, value, sum }) => ({ ...attributes, value, sum }));
  };
  const once = (value: number, sum = value) => [{ value, sum }];
  const { clock, store, add, failing, relayOf } = world();
  const relay = relayOf();
  failing.set('bad', ['permanent']);
  failing.set('slow', ['refused']);
  await add('bad', { sequenceKey: 'poisoned' });
  await clock.advance(30_000);
  await add('slow', { sequenceKey: 'down' });
  await add('a', { sequenceKey: 'fine' });
  await add('b');
  await clock.advance(10_000);
  await relay.sweep({ signal });
  const first = await collected();
  assert.deepEqual(first('published'), once(2));
  assert.deepEqual(first('lag'), once(2, 20));
  assert.deepEqual(
    first('failures').toSorted((left, right) => (JSON.stringify(left) < JSON.stringify(right) ? -1 : 1)),
    ['PUBLISH_REFUSED', 'PUBSUB_UNAVAILABLE'].map((code) => ({
      'pubsub_guarantees.reason': code,
      value: 1,
      sum: 1,
    })),
  );
  assert.deepEqual([first('streams.blocked'), first('pending.age')], [once(1), once(40)]);

  await relay.skip('poisoned');
  await clock.advance(5_000);
  await relay.sweep({ signal });
  const second = await collected();
  assert.deepEqual([second('published'), second('lag')], [once(3), once(3, 35)]);
  assert.deepEqual([second('streams.blocked'), second('pending.age')], [once(0), once(15)]);
  await relay.sweep({ signal });
  assert.deepEqual((await collected())('pending.age'), once(0));

  // The fast path counts as the relay does.
  const box = outbox(store, { clock, relay });
  for (const slot of [{}, { sequenceKey: 'fine' }]) {
    const added = await store.transact(async (transaction) =>
      (await box.reserve(transaction, slot)).add(message('c')),
    );
    await added.afterCommit();
  }
  const third = await collected();
  assert.deepEqual([third('published'), third('lag')], [once(5), once(5, 35)]);
});

test('a pass whose time is over reports nothing about what it has not seen', async (t) => {
  const sdk = registerSdk();
  t.after(() => sdk.close());
  const { clock, add, failing, relayOf } = world();
  for (let row = 0; row < 20; row += 1) {
    failing.set(`${row}`, [{ milliseconds: 1_000 }]);
    await add(`${row}`, { sequenceKey: `k${row}` });
  }
  const { isWhole } = await clock.until(relayOf().sweep({ signal, deadline: clock.monotonic() + 500 }));
  const names = (await sdk.points()).map(({ name }) => name.replace('pubsub_guarantees.outbox.', ''));
  assert.deepEqual([isWhole, names.toSorted()], [false, ['lag', 'published']]);
});
