import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startFirestore, systemClock } from 'pubsub-guarantees-emulator';
import type { WorkerLine } from './pubsub-worker.ts';
import { killWorkers, type KillReport } from './pubsub-workers.ts';
import { hasRedisServer, startRedis } from './redis-server.ts';

// Otherwise the clients look for a machine of Google's to run on, and warn that there is none.
process.env['METADATA_SERVER_DETECTION'] ??= 'none';

/** A few by default, since each costs the start of a process; `npm run test:kills` takes 50. */
const KILLS = Number(process.env['TEST_KILLS'] ?? 2);

type Counts = Readonly<{ lost: readonly string[]; effects: number; recoveries: number; repeats: number }>;

/**
 * Compares the lines of each message with the promise: at least one effect, and a second one only where it is allowed.
 */
function countOutcomes({ messages, lines, killed }: KillReport): Counts {
  const byText = Map.groupBy(lines, ({ text }) => text);
  const lost: string[] = [];
  let [effects, recoveries, repeats] = [0, 0, 0];
  for (let number = 1; number <= messages; number += 1) {
    const text = `message ${number}`;
    const mine = byText.get(text) ?? [];
    const ofRun = Map.groupBy(mine, ({ worker, run }) => `${worker} ${run}`);
    const did = (run: readonly WorkerLine[], what: WorkerLine['what']): boolean =>
      run.some((line) => line.what === what);
    const runs = [...ofRun.values()];
    const done = runs.filter((run) => did(run, 'effect'));
    if (done.length === 0) lost.push(text);
    effects += done.length;
    // Killed in its run, and done by another.
    const broken = runs.filter((run) => killed.has(run[0]?.worker ?? '') && run.at(-1)?.what === 'begun');
    if (broken.length > 0) recoveries += 1;
    // An effect may be repeated if its run was killed before it was settled, or had lost its lease by then.
    const unsettled = done.filter((run) => !did(run, 'settled') || did(run, 'stolen'));
    assert.ok(
      done.length <= unsettled.length + 1,
      `${text} was repeated after it was settled: ${JSON.stringify(mine)}`,
    );
    repeats += Math.max(0, done.length - 1);
  }
  return { lost, effects, recoveries, repeats };
}

function check(name: string, report: KillReport, note: (text: string) => void): void {
  const { lost, effects, recoveries, repeats } = countOutcomes(report);
  const { kills, messages } = report;
  note(
    `${name}: ${kills} kills, ${messages} messages, ${lost.length} lost, ${effects} effects, ${recoveries} recoveries, ${repeats} repeated`,
  );
  assert.deepEqual(lost, [], 'no message is lost');
  assert.ok(report.isDrained, 'something is left in the subscription');
  assert.equal(report.killed.size, kills);
  assert.ok(recoveries > 0, 'no message was recovered');
}

const REDIS = `two processes killed ${KILLS} times lose no message: Redis`;

// Side by side: most of the time goes by in waiting for ack deadlines and leases.
describe('processes that are killed', { concurrency: true }, () => {
  let compiled = '';
  before(async () => {
    compiled = await mkdtemp(join(tmpdir(), 'kills-compiled-'));
  });
  after(() => rm(compiled, { recursive: true, force: true }));

  test(`two processes killed ${KILLS} times lose no message: Firestore`, async (t) => {
    const server = await startFirestore({ clock: systemClock() });
    try {
      const store = { kind: 'firestore', address: server.address } as const;
      check('Firestore', await killWorkers(store, KILLS, compiled), (text) => t.diagnostic(text));
    } finally {
      await server.close();
    }
  });

  if (!hasRedisServer()) {
    test(REDIS, { skip: 'no redis-server on the PATH' }, () => {});
  } else {
    test(REDIS, async (t) => {
      const server = await startRedis();
      try {
        const store = { kind: 'redis', port: server.port } as const;
        check('Redis', await killWorkers(store, KILLS, compiled), (text) => t.diagnostic(text));
      } finally {
        await server.close();
      }
    });
  }
});
