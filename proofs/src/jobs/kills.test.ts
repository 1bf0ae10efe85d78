/**
 * Workers that are killed, and then Postgres itself: what was acknowledged is done, each job with one effect.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from 'pubsub-guarantees-emulator';
import { silent } from '../../../shared/src/log.ts';
import { inTransaction, migrate, postgresJobs } from '../../../shared/src/jobs/postgres.ts';
import { end, heard } from '../servers/child-processes.ts';
import { postgresBinaries, startPostgres } from '../servers/postgres-server.ts';
import { poolOf } from './postgres-jobs.ts';
import type { WorkingTask } from './postgres-worker.ts';

/** A few by default, since each costs the start of a process; `TEST_KILLS` takes more. */
const KILLS = Number(process.env['TEST_KILLS'] ?? 3);
/** At least; they go on coming until the last kill, so that each kill meets work. */
const JOBS = KILLS * 30;
/** No more are pending than the workers do, however slow the machine is: the rest would only take time in the end. */
const BACKLOG = 40;
const WORKERS = 3;
const EVERY_MS = 700;
const LEASE_MS = 2_000;
const TITLE = `T28: ${KILLS} kills of workers and one of Postgres lose no job, and none has two effects`;

const [binaries] = postgresBinaries();
if (binaries === undefined) {
  test(TITLE, { skip: 'no postgres on this machine' }, () => {});
} else {
  test(TITLE, async (t) => {
    const compiled = await mkdtemp(join(tmpdir(), 'jobs-kills-'));
    const server = await startPostgres(binaries);
    const pool = poolOf(server.config);
    const children = new Set<ChildProcess>();
    t.after(async () => {
      await Promise.all([...children].map(end));
      await pool.end();
      await server.close();
      await rm(compiled, { recursive: true, force: true });
    });
    await migrate(pool);
    await pool.query('create table public.effect (job_id bigint not null)');
    const store = postgresJobs(pool, { log: silent });

    const acknowledged = new Map<number, string>();
    let [unknown, repeated] = [0, 0];
    const enqueue = async (number: number): Promise<void> => {
      const job = {
        role: 'r',
        kind: 'effect',
        payload: { number },
        key: `job ${number}`,
        maxAttempts: 1_000,
      };
      while (!acknowledged.has(number)) {
        try {
          const [answer] = await inTransaction(pool, (tx) => store.write(tx, [job]));
          assert.ok(answer !== undefined && answer.kind !== 'conflict');
          if (answer.kind === 'repeated') repeated += 1;
          acknowledged.set(number, answer.id);
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error;
          // The commit may have gone through: with a key the next try answers so.
          unknown += 1;
          await pause(100);
        }
      }
    };
    const task: WorkingTask = { config: server.config, leaseMs: LEASE_MS, rescueAfterStartMs: 3_000 };
    const start = async (): Promise<ChildProcess> => {
      const child = fork(new URL('./postgres-worker.ts', import.meta.url), [JSON.stringify(task)], {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
        env: { NODE_COMPILE_CACHE: compiled, ...process.env },
      });
      children.add(child);
      await heard(child);
      return child;
    };

    const workers = await Promise.all(Array.from({ length: WORKERS }, start));
    const count = async (text: string): Promise<number> =>
      Number((await pool.query<{ count: string }>(`select count(*) from ${text}`)).rows[0]?.count);
    let isOver = false;
    let jobs = 0;
    const enqueuing = (async () => {
      while (jobs < JOBS || !isOver) {
        // While the server is away it goes on trying.
        const pending = await count('jobs.job').catch(() => 0);
        if (pending < BACKLOG) await enqueue((jobs += 1));
        if (pending >= BACKLOG || jobs % 3 === 0) await pause(EVERY_MS / 10);
      }
    })();
    /** Until a run is in progress, so that what is killed next has something to lose. */
    const working = (): Promise<unknown> =>
      until(() => count('jobs.job where state = 1').catch(() => 0), 'a job runs');
    for (let kill = 1; kill <= KILLS; kill += 1) {
      await pause(EVERY_MS);
      await working();
      const victim = workers.shift();
      const next = start();
      if (victim !== undefined) await end(victim);
      workers.push(await next);
      if (kill !== Math.ceil(KILLS / 2)) continue;
      await working();
      await server.kill();
      await pause(EVERY_MS);
      await server.restart();
    }
    isOver = true;
    await enqueuing;

    let relaunched = 0;
    // What three kills hit is dead, as it should be; an operator has it run again.
    while ((await count('jobs.job')) > 0 || (await count('jobs.job_dead')) > 0) {
      const { items } = await store.dead({ limit: 100 });
      relaunched += await store.relaunch(items.map(({ id }) => id));
      await pause(100);
    }
    // Those that live end by themselves, and in order.
    for (const worker of workers) {
      const exited = once(worker, 'exit');
      worker.kill('SIGTERM');
      await exited;
    }

    const rows = async (text: string): Promise<readonly number[]> =>
      (await pool.query<{ count: string }>(text)).rows.map((row) => Number(row.count));
    const ends = await rows(`select count(*) from jobs.job_log where outcome = 'done' group by id`);
    const effects = await rows('select count(*) from public.effect group by job_id');
    const again = await count('jobs.job_log where attempts > 1');
    t.diagnostic(
      `${jobs} jobs, ${KILLS} kills, ${unknown} enqueues of unknown outcome (${repeated} repeats), ${again} jobs run again, ` +
        `${relaunched} dead and relaunched, ${ends.length} done, ${effects.length} with an effect`,
    );
    assert.equal(acknowledged.size, jobs);
    assert.deepEqual([ends.length, ends.filter((one) => one !== 1)], [jobs, []], 'each job is done once');
    assert.deepEqual([effects.length, effects.filter((one) => one !== 1)], [jobs, []], 'with one effect');
    const ids = new Set(acknowledged.values());
    assert.equal(ids.size, jobs);
    assert.equal(
      await count(`jobs.job_log where outcome = 'done' and id = any ('{${[...ids].join()}}')`),
      jobs,
    );
    assert.ok(again > 0, 'a run was killed');
  });
}
