/**
 * Consumers and publishers that are killed at random, on the local stack's servers: what is committed runs, in order and
 * completely, and what runs again is marked as such.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RunLine } from './consuming-task.ts';
import { killWorkers, type KillReport } from './pubsub-workers.ts';

process.env['METADATA_SERVER_DETECTION'] ??= 'none';

/** A few by default, since each costs the start of a process; `npm run test:kills` takes 50. */
const KILLS = Number(process.env['TEST_KILLS'] ?? 2);
/** The error of two readings of the machine's clock, in whole milliseconds. */
const ROUNDING_MS = 2;

test(`consumers and publishers killed ${KILLS} times: streams stay in order and complete`, async (t) => {
  const found = await killWorkers(KILLS);
  const { lines, killed, committed, streams, leftBehind } = found;
  const [takeovers, sweeps] = (['takeover', 'swept'] as const).map(
    (what) => lines.filter((line) => line.what === what).length,
  );
  const texts = [...committed.values()].flat();
  const repeats = [...committed].map(([key, ofKey]) => checkKey(found, key, ofKey));
  t.diagnostic(
    `${killed.publisher} publishers and ${killed.consumer} consumers killed, ${texts.length} orders on ${committed.size} keys; ` +
      `recovered: ${takeovers} takeovers, ${sweeps} streams taken by sweeps, ${leftBehind} rows left to the last relay; ` +
      `${repeats.reduce((sum, count) => sum + count, 0)} runs were repeats`,
  );
  assert.equal(killed.publisher + killed.consumer, KILLS);
  assert.equal(streams.size, committed.size);
  assert.ok((takeovers ?? 0) > 0, 'no process took over what a killed one had');
});

/** Answers the number of repeats. */
function checkKey({ lines, streams }: KillReport, key: string, texts: readonly string[]): number {
  const stream = streams.get(key);
  const end = { status: stream?.status, last: stream?.last, held: stream?.held, skipped: stream?.skipped };
  assert.deepEqual(end, { status: 'idle', last: texts.length, held: 0, skipped: [] }, `${key} is drained`);

  const runs = lines.filter((line): line is RunLine => 'key' in line && line.key === key);
  const effects = runs.filter(({ what }) => what === 'effect');
  const firsts = [...Map.groupBy(effects, ({ number }) => number).values()].map(([first]) => first);
  assert.deepEqual(
    firsts.map((first) => first?.number),
    texts.map((_, index) => index + 1),
    `first runs of ${key} are complete and in order`,
  );
  assert.deepEqual(
    new Set(firsts.map((first) => first?.text)),
    new Set(texts),
    `each order of ${key} has a number`,
  );

  const before = new Map<number, RunLine>();
  let repeats = 0;
  for (const run of runs.filter(({ what }) => what === 'begun')) {
    const last = before.get(run.number);
    before.set(run.number, run);
    if (last === undefined) continue;
    repeats += 1;
    const what = `${JSON.stringify(last)} and then ${JSON.stringify(run)}`;
    assert.deepEqual([run.text, run.dedupId], [last.text, last.dedupId], `a repeat is recognisable: ${what}`);
    assert.ok(BigInt(run.token) > BigInt(last.token), `a repeat has a greater token: ${what}`);
    assert.ok(run.atMs + ROUNDING_MS >= last.untilMs, `a repeat has lost its former lease: ${what}`);
  }
  // No start of a number before the one below it is done.
  const done = new Set<number>([0]);
  for (const run of runs) {
    assert.ok(done.has(run.number - 1), `${key}#${run.number} began before its turn`);
    if (run.what === 'effect') done.add(run.number);
  }
  return repeats;
}
