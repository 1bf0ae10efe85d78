import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Handler } from '../handler.ts';
import { jsonLog } from '../log.ts';
import { ack, retry } from '../outcome.ts';
import { reportOldGaps } from './old-gaps.ts';
import { type InOrderOptions, portsOf } from './options.ts';
import { bench, CONSUMER } from './testing/bench.ts';

/** By default 1 is done, and 5 waits for 2 to 4 since `waitedMs`. */
async function reported(
  waitedMs: number,
  numbers: readonly number[] = [1, 5],
  handler: Handler = async () => ack(),
): Promise<readonly Record<string, unknown>[]> {
  const { clock, store, worker } = bench();
  const { deliver } = worker({ handler });
  for (const number of numbers) await deliver(number);
  await clock.advance(waitedMs);
  const lines: Record<string, unknown>[] = [];
  const log = jsonLog((line) => lines.push(JSON.parse(line) as Record<string, unknown>));
  const options: InOrderOptions = { clock, gaps: { timeout: '2m' } };
  const context = {
    consumer: CONSUMER,
    now: () => clock.now(),
    deadline: Infinity,
    signal: new AbortController().signal,
    log,
  };
  await reportOldGaps(portsOf(store, options), context);
  return lines;
}

test('a stream that has waited for a number for its time is told of, with the number and how long', async () => {
  assert.deepEqual(await reported(2 * 60_000 + 5_000), [
    {
      severity: 'WARNING',
      message: 'in order: a stream has waited for a number for longer than the gap timeout',
      event: 'order_gap_old',
      consumer: CONSUMER,
      sequenceKey: '#8254c329a928',
      missing: 2,
      waitedSeconds: 125,
    },
  ]);
});

test('a gap that is younger is told to nobody', async () => {
  assert.deepEqual(await reported(2 * 60_000 - 1), []);
});

test('a stream whose head has come and fails waits for no number, whatever comes behind it and in whatever order', async () => {
  const fails: Handler = async (message) =>
    message.attributes['sequence'] === '2' ? retry(new Error('no')) : ack();
  for (const order of [
    [1, 2, 3],
    [3, 1, 2],
    [1, 3, 2],
    [1, 2, 4, 3],
  ]) {
    assert.deepEqual(await reported(3 * 60_000, order, fails), [], String(order));
  }
});

test('every sweep looks for them', async () => {
  const asked: unknown[] = [];
  const { store, worker, clock } = bench({ gaps: { timeout: '2m' } });
  const list = store.list;
  Object.assign(store, {
    list: async (consumer: string, query: object) => {
      asked.push(query);
      return list(consumer, query as Parameters<typeof list>[1]);
    },
  });
  const { deliver, sweep } = worker();
  for (const number of [1, 5]) await deliver(number);
  await clock.advance(3 * 60_000);
  await sweep();
  assert.ok(asked.some((query) => JSON.stringify(query).includes('"forMs":120000')));
});
