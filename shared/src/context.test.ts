import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contextFor } from './context.ts';
import { ConfigError } from './errors.ts';
import { virtualClock } from './testing/index.ts';

test('what is not said is a minute, a signal that is never aborted and a log that says nothing', async () => {
  const clock = virtualClock();
  const context = contextFor(clock, { consumer: 'orders' });
  assert.deepEqual([context.consumer, context.source], ['orders', 'orders']);
  assert.equal(context.deadline, clock.monotonic() + 60_000);
  await clock.advance(120_000);
  assert.deepEqual([context.now(), context.signal.aborted], [clock.now(), false]);
});

test('given parts are kept', () => {
  const clock = virtualClock();
  const signal = AbortSignal.abort();
  const said = { consumer: 'orders', source: 'sub', deadline: 5, signal, isLastTry: true };
  const { now: _now, log: _log, ...context } = contextFor(clock, said);
  assert.deepEqual(context, said);
});

test('a context for no consumer is refused', () => {
  assert.throws(() => contextFor(virtualClock(), { consumer: '' }), ConfigError);
});
