/**
 * The example of raster acquisition, as a user would run it; and jobs that psql and a program in Python enqueue by the
 * statements of docs/jobs.md, worked by the example's own handlers. One Postgres for all of them.
 */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { after, before, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { worker } from 'pubsub-guarantees/jobs';
import { migrate, postgresJobs } from 'pubsub-guarantees/jobs/postgres';
import { postgresBinaries, type RunningPostgres, startPostgres } from 'pubsub-guarantees-emulator';
import { roles, TABLES } from './roles.ts';

const EXAMPLE = fileURLToPath(new URL('./acquisition.ts', import.meta.url));
const PAGE = new URL('../../../docs/jobs.md', import.meta.url);

const [binaries] = postgresBinaries();
if (binaries === undefined) {
  test('the examples of jobs', { skip: 'no postgres on this machine' }, () => {});
} else {
  suite('the examples of jobs', () => {
    let server: RunningPostgres;
    let pool: pg.Pool;
    let env: NodeJS.ProcessEnv;
    before(async () => {
      server = await startPostgres(binaries);
      const { host, port, user, database } = server.config;
      env = { ...process.env, DATABASE_URL: `postgresql://${user}@${host}:${port}/${database}` };
      pool = new pg.Pool(server.config);
      await migrate(pool);
      await pool.query(TABLES);
    });
    after(async () => {
      await pool.end();
      await server.close();
    });

    test('acquisition: the console first, then the calendar, then the backfill, each scene once', async () => {
      const ended = await new Promise<Readonly<{ code: number; out: string; err: string }>>((resolve) => {
        const args = ['--conditions=source', EXAMPLE];
        execFile(process.execPath, args, { env, timeout: 240_000 }, (error, out, err) => {
          resolve({ code: error === null ? 0 : Number(error.code ?? -1), out, err });
        });
      });
      assert.equal(ended.code, 0, ended.err);
      const [backfill, scheduled, console1, console2, done, order = '', first, late, ...rest] =
        ended.out.split('\n');
      assert.deepEqual(
        [backfill, scheduled, console1, console2],
        [
          `backfill: ${Array(12).fill('enqueued').join(' ')}`,
          'scheduled: enqueued enqueued enqueued',
          'console: enqueued',
          'console: repeated',
        ],
      );
      assert.equal(done, 'done, and 0 dead');
      const scenes = order.replace('exported in this order: ', '').split(' ').map(Number);
      assert.deepEqual(scenes.slice(0, 4), [900, 501, 502, 503]);
      // One of the backfill is there at the second run, and so behind others.
      assert.deepEqual(
        scenes.slice(4).toSorted((one, other) => one - other),
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
      );
      assert.match(first ?? '', /^scene 900: vegetation 0\.\d\d$/);
      assert.deepEqual([late, ...rest], ['scene 12 was there at the run number 2', '']);
      assert.match(ended.err, /^[^\n]*"event":"job_failed"[^\n]*SCENE_NOT_READY[^\n]*\n$/);
    });

    /** Resolves when the job of the scene is done. */
    const exported = async (scene: number): Promise<void> => {
      const running = worker(postgresJobs(pool), roles, { poll: '50ms', drainOnSigterm: false });
      for (;;) {
        const { rows } = await pool.query('select from acquisition.export where scene = $1', [scene]);
        if (rows.length > 0) break;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      await running.stop();
    };
    /** What the page has in this language, for another scene. */
    const documented = async (language: string, scene: number): Promise<string> => {
      const text = await readFile(PAGE, 'utf8');
      const blocks = [...text.matchAll(/```(\w+)\n([\s\S]*?)```/g)];
      const [, , block = ''] =
        blocks.find(([, kind, content = '']) => kind === language && content.includes('enqueue_job(')) ?? [];
      assert.match(block, /42/);
      return block.replaceAll('42', String(scene));
    };

    test('psql enqueues a job by the statement of the page, and it is worked', async (t) => {
      if (spawnSync('psql', ['--version'], { stdio: 'ignore' }).status !== 0)
        return t.skip('there is no psql');
      const statement = await documented('sql', 7_001);
      const psql = (): string => {
        const args = [
          '--no-psqlrc',
          '--tuples-only',
          '--no-align',
          '-d',
          env['DATABASE_URL'] ?? '',
          '-c',
          statement,
        ];
        const { stdout, stderr } = spawnSync('psql', args, { encoding: 'utf8' });
        return stdout.trim() || stderr;
      };
      const [, id = ''] = /^enqueued\|(\d+)\|$/.exec(psql()) ?? [];
      assert.equal(psql(), `repeated|${id}|ready`);
      await exported(7_001);
      assert.equal(psql(), `repeated|${id}|done`);
    });

    test('a program in Python enqueues a job by the statement of the page, and it is worked', async (t) => {
      const imports = spawnSync('python3', ['-c', 'import psycopg'], { stdio: 'ignore' });
      if (imports.status !== 0) return t.skip('there is no python3 with psycopg');
      const program = await documented('python', 7_002);
      const python = (): string => {
        const { stdout, stderr } = spawnSync('python3', ['-c', program], { encoding: 'utf8', env });
        return stdout.trim() || stderr;
      };
      assert.deepEqual([python(), python()], ['enqueued', 'repeated']);
      await exported(7_002);
      assert.equal(python(), 'repeated', 'also when it is done');
    });
  });
}
