/**
 * The commands of `jobs` on a real Postgres: as processes where the process matters, and by their function where only
 * what they do and print does.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { readCommandLine } from '../../../shared/src/cli/command-line.ts';
import { openJobs } from '../../../shared/src/cli/postgres-jobs.ts';
import { runJobs } from '../../../shared/src/cli/run-jobs.ts';
import type { Printed } from '../../../shared/src/cli/usage.ts';
import { silent } from '../../../shared/src/log.ts';
import type { NewJob } from '../../../shared/src/jobs/job.ts';
import type { Ending, JobStore } from '../../../shared/src/jobs/job-store.ts';
import { postgresJobs, type PostgresTransaction } from '../../../shared/src/jobs/postgres.ts';
import { poolOf } from '../jobs/postgres-jobs.ts';
import { end } from '../servers/child-processes.ts';
import { postgresBinaries, type RunningPostgres, startPostgres } from '../servers/postgres-server.ts';

const BIN = fileURLToPath(new URL('../../../shared/bin/pubsub-guarantees.js', import.meta.url));
const SOURCE = pathToFileURL(fileURLToPath(new URL('../../../shared/src/', import.meta.url))).href;

const [binaries] = postgresBinaries();
if (binaries === undefined) {
  test('the commands of jobs', { skip: 'no postgres on this machine' }, () => {});
} else {
  suite('the commands of jobs', () => {
    let server: RunningPostgres;
    let pool: ReturnType<typeof poolOf>;
    let store: JobStore<PostgresTransaction>;
    let folder = '';
    let environment: Readonly<Record<string, string>>;
    let call = 0;
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'jobs-command-'));
      server = await startPostgres(binaries);
      const { host, port, user, database } = server.config;
      environment = { DATABASE_URL: `postgresql://${user}@${host}:${port}/${database}` };
      pool = poolOf(server.config);
      store = postgresJobs(pool, { log: silent });
    });
    after(async () => {
      await pool.end();
      await server.close();
      await rm(folder, { recursive: true, force: true });
    });

    const command = (...args: string[]): Promise<Readonly<{ code: number; out: string; err: string }>> =>
      new Promise((resolve) => {
        const env = { PATH: process.env['PATH'], ...environment };
        execFile(process.execPath, [BIN, 'jobs', ...args], { env, timeout: 240_000 }, (error, out, err) => {
          resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, out, err });
        });
      });
    const run = async (...args: string[]): Promise<Printed> => {
      const line = readCommandLine(['jobs', ...args], environment);
      assert.ok(line !== 'help' && line.area === 'jobs' && line.command.kind !== 'work');
      const { close, ...ports } = await openJobs(line);
      try {
        return await runJobs(ports, line.command);
      } finally {
        await close();
      }
    };
    const textOf = async (...args: string[]): Promise<string> => (await run(...args)).lines.join('\n');
    const enqueued = async (...jobs: readonly NewJob[]): Promise<readonly string[]> =>
      (await store.submit(jobs)).map((one) => ('id' in one ? one.id : one.first));
    /** Runs the next job of the role, which ends so. */
    const worked = async (role: string, ending: Ending): Promise<void> => {
      const claim = {
        roles: [{ role, leaseMs: 30_000 }],
        limit: 1,
        suspect: true,
        ageingMs: 60_000,
      };
      const { claimed } = await store.exchange('tester', (call += 1), { renew: [], settle: [], claim });
      const settle = claimed.map(({ id, token }) => ({ held: { id, token }, ending }));
      assert.equal(settle.length, 1);
      await store.exchange('tester', (call += 1), { renew: [], settle });
    };

    test('a database without tables is said in one line, and migrate makes them', async () => {
      const early = await command('list');
      assert.deepEqual([early.code, early.out], [1, '']);
      assert.match(early.err, /^error: Postgres: .* \(STORE_NOT_MIGRATED\)\n$/);
      assert.deepEqual(await command('migrate'), {
        code: 0,
        out: 'the tables are those of this version\n',
        err: '',
      });
      await pool.query('create role desk login');
      assert.deepEqual((await run('migrate', '--grant', 'desk=ingest,export')).object, { migrated: true });
      const { rows } = await pool.query('select account, role from jobs.job_grant order by role');
      assert.deepEqual(rows, [
        { account: 'desk', role: 'export' },
        { account: 'desk', role: 'ingest' },
      ]);
    });

    test('list shows what has not ended, newest first, by role and state and in pages', async () => {
      assert.deepEqual((await run('list')).lines, ['no jobs']);
      const [first = '', second = '', third = ''] = await enqueued(
        { role: 'lists', kind: 'a', payload: 1 },
        { role: 'lists', kind: 'b', payload: 2, after: '1h', priority: 2 },
        { role: 'other', kind: 'c', payload: 3 },
      );
      const { code, out, err } = await command('list', '--role', 'lists');
      assert.deepEqual([code, err], [0, '']);
      const lines = out.split('\n');
      assert.match(lines[0] ?? '', /^ID +ROLE +KIND +STATE +PRIORITY +RUNS +RUN AT$/);
      assert.match(lines[1] ?? '', new RegExp(`^${second} +lists +b +waiting +2 +0/3 +20\\S+Z$`));
      assert.match(lines[2] ?? '', new RegExp(`^${first} +lists +a +ready +5 +0/3 +20\\S+Z$`));
      assert.deepEqual(lines.slice(3), ['']);
      const page = (await run('list', '--page-size', '2', '--json')).object as {
        jobs: readonly { id: string }[];
        nextPageToken: string;
      };
      assert.deepEqual(
        page.jobs.map(({ id }) => id),
        [third, second],
      );
      assert.match(await textOf('list', '--page-size', '2'), new RegExp(`\nmore: --page ${second}$`));
      assert.match(await textOf('list', '--page', page.nextPageToken), new RegExp(`^ID .*\n${first} .*$`));
      assert.match(
        await textOf('list', '--state', 'waiting', '--role', 'lists'),
        new RegExp(`^ID .*\n${second} .*$`),
      );
      await worked('lists', {
        kind: 'failed',
        error: { code: 'GATEWAY_DOWN', text: 'no\nanswer' },
        delayMs: 0,
        counts: true,
      });
      assert.match(await textOf('list', '--role', 'lists'), / 1\/3 .* GATEWAY_DOWN: no\\nanswer$/);
    });

    test('show has a job in each of its states, and its ends', async () => {
      const [id = ''] = await enqueued({
        role: 'shows',
        kind: 'scene',
        payload: { scene: 42 },
        key: 'scene 42',
      });
      assert.match(
        await textOf('show', id),
        new RegExp(
          `^id +${id}\nrole +shows\nkind +scene\nstate +ready\npriority +5\nruns +0/3\ncreated .*Z\nrun at .*Z\npayload +\\{"scene":42\\}$`,
        ),
      );
      const claim = { roles: [{ role: 'shows', leaseMs: 30_000 }], limit: 1, suspect: false, ageingMs: 0 };
      const { claimed } = await store.exchange('worker-7', (call += 1), { renew: [], settle: [], claim });
      assert.match(await textOf('show', id), /\nstate +running\n[\s\S]*\nlease +worker-7 until .*Z\n/);
      assert.match(await textOf('cancel', id), /^requested: it runs, and is told/);
      assert.match(await textOf('show', id), /\nstate +running, to be cancelled\n/);
      const settle = claimed.map(({ token }) => ({
        held: { id, token },
        ending: { kind: 'cancelled' } as const,
      }));
      await store.exchange('worker-7', (call += 1), { renew: [], settle });
      const ended = await textOf('show', id);
      assert.match(ended, /\nstate +cancelled\nruns +1\n/);
      assert.match(ended, /\n\n20\S+Z +cancelled +began after \d+ ms, ran \d+ ms$/);
      assert.doesNotMatch(ended, /payload|lease|run at/);
      assert.match(await textOf('cancel', id), /^tooLate: /);
      assert.deepEqual(await command('show', '999999'), {
        code: 1,
        out: '',
        err: 'error: there is no job 999999, or it ended more than 14 days ago; accepted: one that jobs list or jobs dead shows (JOB_UNKNOWN)\n',
      });
    });

    test('dead jobs are shown with their reason, run again or are discarded', async () => {
      assert.deepEqual((await run('dead')).lines, ['no dead jobs']);
      const [one = '', other = ''] = await enqueued(
        { role: 'dies', kind: 'pdf', payload: { page: 1 } },
        { role: 'dies', kind: 'pdf', payload: { page: 2 } },
      );
      for (const text of ['no paper', 'no\u001b[2J ink'])
        await worked('dies', { kind: 'dead', error: { code: 'BAD', text } });
      assert.match(
        await textOf('dead'),
        new RegExp(
          `^ID +ROLE +KIND +RUNS +DIED *\n${other} +dies +pdf +1/3 +20\\S+Z +BAD: no\\\\u001b\\[2J ink\n${one} .* BAD: no paper$`,
        ),
      );
      assert.match(await textOf('dead', '--page-size', '1'), new RegExp(`\nmore: --page ${other}$`));
      assert.match(
        await textOf('show', one),
        /\nstate +dead\n[\s\S]*\npayload +\{"page":1\}\nerror +BAD: no paper\n\n20\S+Z +dead /,
      );
      assert.deepEqual((await run('relaunch', one, '999999')).lines, [
        'relaunched 1 of 2; the rest is not dead, or not there',
      ]);
      assert.match(await textOf('show', one), /\nstate +ready\n[\s\S]*\nruns +0\/3\n/);
      assert.deepEqual((await run('discard', other)).object, { ids: [other], discarded: 1 });
      assert.deepEqual((await run('dead', '--role', 'dies')).lines, ['no dead jobs']);
      assert.equal((await textOf('cancel', one)).split(':')[0], 'cancelled');
    });

    test('health is exit code 1 where there is a problem, and tidy says what it deleted', async () => {
      // How long a start took depends on what else the machine does.
      const patient = ['--pick-up-p95', '1h'];
      const calm = await run('health', ...patient);
      assert.deepEqual([calm.exitCode, calm.lines[0]], [0, 'ok']);
      await pool.query(
        `insert into jobs.job_sample (at, backlog, xid) select date_trunc('minute', now()) - n * interval '1 minute', 500, 1
         from generate_series(1, 9) n on conflict do nothing`,
      );
      const sick = await command('health', '--backlog-for', '10m', ...patient);
      assert.deepEqual([sick.code, sick.err], [1, '']);
      assert.match(sick.out, /^BACKLOG: \d+ jobs waited on average; accepted: 100\nbacklog +\d+ now, /);
      assert.equal(
        (await run('health', '--backlog-for', '10m', '--backlog', '1000', ...patient)).exitCode,
        0,
      );
      await pool.query(
        `insert into jobs.job_key values (decode('ff', 'hex'), 'r', decode('ff', 'hex'), 1, now() - interval '1 day')`,
      );
      assert.deepEqual((await run('tidy')).lines, ['deleted keys: 1, rows of the log: 0']);
    });

    test('work runs the handlers of a module, and ends with SIGTERM and exit code 0', async (t) => {
      const module = join(folder, 'handlers.mjs');
      await writeFile(
        module,
        `import { ack } from '${SOURCE}outcome.ts';
         export const options = { poll: '50ms' };
         export const roles = {
           works: {
             runTimeout: '1m',
             handle: {
               async sum({ payload }, { transaction }) {
                 await (await transaction()).query('insert into public.sum values ($1)', [payload.left + payload.right]);
                 return ack();
               },
             },
           },
         };`,
      );
      await pool.query('create table public.sum (value integer)');
      await enqueued({ role: 'works', kind: 'sum', payload: { left: 40, right: 2 } });
      const env = { PATH: process.env['PATH'], ...environment };
      const args = [
        BIN,
        'jobs',
        'work',
        module,
        '--concurrency',
        '2',
        '--direct-url',
        environment['DATABASE_URL'] ?? '',
      ];
      const child: ChildProcess = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
      t.after(() => end(child));
      let [out, err] = ['', ''];
      child.stdout?.on('data', (data: Buffer) => (out += data.toString()));
      child.stderr?.on('data', (data: Buffer) => (err += data.toString()));
      const closed = once(child, 'close');
      for (;;) {
        const { rows } = await pool.query<{ value: number }>('select value from public.sum');
        if (rows.length > 0) {
          assert.deepEqual(rows, [{ value: 42 }]);
          break;
        }
        assert.equal(child.exitCode, null, err);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      child.kill('SIGTERM');
      assert.deepEqual(await closed, [0, null], err);
      assert.equal(err, 'works works, 2 at once; SIGTERM or Ctrl-C ends it\n');
      assert.equal(out, 'stopped: what it held has ended, or was given back\n');
    });

    test('without the package pg the command says that it needs it', async () => {
      const hook = `import { registerHooks } from 'node:module';
        registerHooks({ resolve(name, context, next) {
          if (name === 'pg') throw Object.assign(new Error('no pg'), { code: 'ERR_MODULE_NOT_FOUND' });
          return next(name, context);
        } });`;
      const args = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`, BIN, 'jobs', 'list'];
      const err = await new Promise<string>((resolve) => {
        const env = { PATH: process.env['PATH'], ...environment };
        execFile(process.execPath, args, { env, timeout: 240_000 }, (_error, _out, text) => resolve(text));
      });
      assert.match(
        err,
        /^error: the commands of jobs need the package pg; accepted: .* \(CLIENT_MISSING\)\n$/,
      );
    });

    test('a module that exports no roles is refused by its name', async () => {
      const module = join(folder, 'empty.mjs');
      await writeFile(module, 'export const other = 1;');
      const { code, err } = await command('work', module);
      assert.equal(code, 1);
      assert.match(
        err,
        /^error: MODULE is .*, which exports no roles; accepted: a file .* \(INVALID_OPTION\)\n$/,
      );
    });
  });
}
