/** The program of docs/jobs.md, in Python, against a real Postgres: its job is worked. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { ack } from '../../../shared/src/outcome.ts';
import { silent } from '../../../shared/src/log.ts';
import { migrate, postgresJobs } from '../../../shared/src/jobs/postgres.ts';
import { worker } from '../../../shared/src/jobs/worker.ts';
import { postgresBinaries, startPostgres } from '../servers/postgres-server.ts';
import { poolOf } from './postgres-jobs.ts';

const TITLE = 'the program in Python that the page on jobs shows enqueues a job, which is worked';
const [binaries] = postgresBinaries();
const hasPsycopg = spawnSync('python3', ['-c', 'import psycopg'], { stdio: 'ignore' }).status === 0;

if (binaries === undefined || !hasPsycopg) {
  test(TITLE, { skip: 'no postgres on this machine, or no psycopg for python3' }, () => {});
} else {
  test(TITLE, async (t) => {
    const page = await readFile(new URL('../../../docs/jobs.md', import.meta.url), 'utf8');
    const [, program = ''] = /```python\n([\s\S]*?)```/.exec(page) ?? [];
    const server = await startPostgres(binaries);
    const pool = poolOf(server.config);
    t.after(async () => {
      await pool.end();
      await server.close();
    });
    await migrate(pool);
    const { host, port, user, database } = server.config;
    const run = (): string => {
      const env = { ...process.env, DATABASE_URL: `postgresql://${user}@${host}:${port}/${database}` };
      const { stdout, stderr } = spawnSync('python3', ['-c', program], { encoding: 'utf8', env });
      return stdout.trim() || stderr;
    };
    assert.deepEqual([run(), run()], ['enqueued', 'repeated']);
    const worked = Promise.withResolvers<unknown>();
    const running = worker(
      postgresJobs(pool, { log: silent }),
      {
        ingest: {
          runTimeout: '1m',
          handle: {
            async scene(job) {
              worked.resolve(job.payload);
              return ack();
            },
          },
        },
      },
      { drainOnSigterm: false, log: silent },
    );
    assert.deepEqual(await worked.promise, { scene: 42 });
    await running.stop();
    assert.equal(run(), 'repeated', 'also when it is done');
  });
}
