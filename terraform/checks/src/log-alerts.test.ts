/**
 * Alerts on lines of the log: each is passed by the line that the code writes, as Cloud Logging keeps it, and by no
 * other line.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, text } from './facts/values.ts';
import { passesLogFilter } from './filters.ts';
import type { Json, JsonObject } from './module.ts';
import { readPlan } from './plans.ts';

type Made = (...given: unknown[]) => unknown;
/** By its place: the workspaces of what is deployed are no dependencies of the checks. */
const imported = async (path: string): Promise<Record<string, Made>> =>
  (await import(new URL(`../../../shared/src/${path}`, import.meta.url).href)) as Record<string, Made>;

const { jsonLog } = await imported('log.ts');
const { logPoison } = await imported('order/poison.ts');
const { reportOldGaps } = await imported('order/old-gaps.ts');

/** What a function writes, as an entry of its service. */
async function entryOf(service: string, write: (log: unknown) => unknown): Promise<Json> {
  const lines: string[] = [];
  await write(jsonLog?.((line: unknown) => lines.push(String(line)), { labels: { function: 'fifo' } }));
  assert.equal(lines.length, 1);
  const { severity, ...payload } = JSON.parse(lines[0] ?? '') as JsonObject;
  return {
    severity: severity ?? '',
    resource: { type: 'cloud_run_revision', labels: { service_name: service } },
    jsonPayload: payload,
  };
}

const ref = { consumer: 'ledger-fifo', key: 'k' };
const halted = (policy: string) => (log: unknown) =>
  logPoison?.(policy, { log }, ref, 7, 10, new Error('no'));
const oldGap = (log: unknown) => {
  const state = { waitingSince: 0, last: 1 };
  const store = { list: async () => ({ keys: [{ ref, state, nowMs: 400_000 }] }) };
  return reportOldGaps?.({ store, gapTimeoutMs: 300_000 }, { consumer: 'ledger-fifo', log });
};

const filters = new Map(
  (await readPlan('complete')).resources
    .filter(({ type }) => type === 'google_monitoring_alert_policy')
    .map(
      ({ address, values }) =>
        [
          /\["(\w+)"\]$/.exec(address)?.[1] ?? '',
          text(at(values, 'conditions', 'condition_matched_log', 'filter')),
        ] as const,
    )
    .filter(([, filter]) => filter !== ''),
);
const passed = async (service: string, write: (log: unknown) => unknown): Promise<readonly string[]> => {
  const entry = await entryOf(service, write);
  return [...filters].filter(([, filter]) => passesLogFilter(filter, entry)).map(([name]) => name);
};

test('there are two, about streams that stand still and about old gaps', () => {
  assert.deepEqual([...filters.keys()].toSorted(), ['gaps', 'halted']);
});

test('a stream that stands still is told of, in every function with streams', async () => {
  for (const service of ['ledger-fifo', 'payments-pipe'])
    assert.deepEqual(await passed(service, halted('halt')), ['halted']);
});

test('an old gap is told of', async () => {
  assert.deepEqual(await passed('ledger-fifo', oldGap), ['gaps']);
});

test('a stream that goes on, and a service of somebody else, are told of to nobody', async () => {
  assert.deepEqual(await passed('ledger-fifo', halted('skip')), []);
  assert.deepEqual(await passed('reminders', halted('halt')), []);
});

test('a filter that is not understood is an error, not a pass', () => {
  assert.throws(() => passesLogFilter('severity >= ERROR', {}), /not understood/);
});
