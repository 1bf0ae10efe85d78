import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PermanentError } from '../../../shared/src/errors.ts';
import { deadLetter } from '../../../shared/src/outcome.ts';
import { registerSdk } from '../telemetry/sdk.ts';
import { bench, CONSUMER, kindOf } from './bench.ts';

test('poison, streams that are blocked or wait, and gaps are measured, without a key in any attribute', async (t) => {
  const sdk = registerSdk();
  t.after(() => sdk.close());
  const consumer = { 'pubsub_guarantees.consumer': CONSUMER };
  /** Collected once: a gauge that was not set since the last collection is not there. */
  const collected = async () => {
    const points = await sdk.points();
    return (name: string) =>
      points
        .filter((point) => point.name === `pubsub_guarantees.${name}`)
        .map(({ attributes, value }) => ({ ...attributes, value }));
  };
  const repair = { republish: async () => [2] };
  const { clock, worker } = bench({ onGap: 'skip', gap: { timeout: '1m', repair } });
  const bad = worker({ handler: async () => deadLetter(new PermanentError('BAD', 'never')) });
  await bad.deliver(1, { key: 'poisoned' });
  for (const number of [1, 3]) await worker().deliver(number, { key: 'torn' });
  await clock.advance(90_000);
  const { sweep } = worker();
  await sweep();
  const first = await collected();
  assert.deepEqual(first('poison'), [{ ...consumer, 'pubsub_guarantees.reason': 'BAD', value: 1 }]);
  assert.deepEqual(first('gaps.repaired'), [{ ...consumer, value: 1 }]);
  assert.deepEqual(first('streams.blocked'), [{ ...consumer, value: 1 }]);
  assert.deepEqual(first('streams.waiting'), [{ ...consumer, value: 1 }]);
  assert.deepEqual(first('gaps.age'), [{ ...consumer, value: 90 }]);
  assert.deepEqual(first('messages.held'), [{ ...consumer, value: 2 }]);
  await clock.advance(60_000);
  await sweep();
  const second = await collected();
  assert.deepEqual(second('gaps.skipped'), [{ ...consumer, value: 1 }]);
  assert.deepEqual(second('streams.waiting'), [{ ...consumer, value: 0 }]);
  assert.deepEqual(second('gaps.age'), [{ ...consumer, value: 0 }]);
});

test('numbers that are acknowledged as stale without being compared are counted, and those that were compared are not', async (t) => {
  const sdk = registerSdk();
  t.after(() => sdk.close());
  const { worker } = bench({ onUnknownStale: 'ack' });
  const { deliver } = worker();
  // One more than what a stream remembers the contents of.
  for (let number = 1; number <= 101; number += 1) await deliver(number);
  assert.equal(kindOf(await deliver(2)), 'ack stale');
  assert.deepEqual(await sdk.points('pubsub_guarantees.stale.unknown'), []);
  for (const content of ['a', 'b']) assert.equal(kindOf(await deliver(1, { content })), 'ack stale');
  const points = await sdk.points('pubsub_guarantees.stale.unknown');
  assert.deepEqual(
    points.map(({ attributes, value }) => ({ ...attributes, value })),
    [{ 'pubsub_guarantees.consumer': CONSUMER, value: 2 }],
  );
});
