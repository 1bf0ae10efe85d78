/** Rules that only a database can have. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import type pg from 'pg';
import { Client } from 'pg';
import { systemClock } from '../../../shared/src/clock.ts';
import { silent } from '../../../shared/src/log.ts';
import { connectionsOf } from '../../../shared/src/postgres/connection.ts';
import { checkVersion, migrateBy } from '../../../shared/src/postgres/migrations.ts';
import { startHangingProxy } from '../servers/hanging-proxy.ts';
import { postgresBinaries, type RunningPostgres, startPostgres } from '../servers/postgres-server.ts';
import type { NewJob } from '../../../shared/src/jobs/job.ts';
import type { ClaimQuery } from '../../../shared/src/jobs/job-store.ts';
import { jobs } from '../../../shared/src/jobs/jobs.ts';
import {
  inTransaction,
  migrate,
  postgresJobs,
  type PostgresJobsOptions,
} from '../../../shared/src/jobs/postgres.ts';
import { exchangeStatement } from '../../../shared/src/jobs/postgres-statements.ts';
import { TABLES_VERSION, tablesOf } from '../../../shared/src/jobs/postgres-tables.ts';
import { poolOf } from './postgres-jobs.ts';

const [binaries] = postgresBinaries();
const query = (role: string, limit = 10): ClaimQuery => ({
  roles: [{ role, leaseMs: 30_000 }],
  limit,
  suspect: true,
  ageingMs: 60_000,
});
const job = (role: string, change: Partial<NewJob> = {}): NewJob => ({
  role,
  kind: 'k',
  payload: 1,
  ...change,
});

if (binaries === undefined) {
  test('rules of jobs in Postgres', { skip: 'no postgres on this machine' }, () => {});
} else {
  describe(`rules of jobs in Postgres ${binaries.name}`, () => {
    let server: RunningPostgres;
    let pool: pg.Pool;
    before(async () => {
      server = await startPostgres(binaries);
      pool = poolOf(server.config);
      await migrate(pool);
    });
    after(async () => {
      await pool.end();
      await server.close();
    });

    const open = (options: PostgresJobsOptions = {}, on = pool) =>
      postgresJobs(on, { rescueAfterStart: '0s', log: silent, ...options });
    const enqueue = (...list: readonly NewJob[]) => inTransaction(pool, (tx) => open().write(tx, list));
    const claim = async (store: ReturnType<typeof open>, role: string, limit?: number) =>
      (await store.exchange('w', 1, { renew: [], settle: [], claim: query(role, limit) })).claimed;
    const count = async (text: string, values: unknown[] = []): Promise<number> =>
      Number((await pool.query<{ count: string }>(text, values)).rows[0]?.count);

    test('T18: what commits behind the bound of the claims is found by the next one that looks at everything', async () => {
      // Every claim is slow by this clock.
      let nowMs = 0;
      const clock = { ...systemClock(), monotonic: () => (nowMs += 30) };
      const store = open({ clock });
      await enqueue(job('late'), job('late'));
      assert.equal((await claim(store, 'late', 1)).length, 1);
      const old = new Client(server.config);
      await old.connect();
      await old.query('begin');
      await old.query(`select jobs.enqueue_job('late', 'k', '"old"')`);
      await old.query(`update jobs.job set run_at = run_at - interval '10 minutes' where payload = '"old"'`);
      assert.equal((await claim(store, 'late', 1)).length, 1);
      await old.query('commit');
      await old.end();
      assert.deepEqual(await claim(store, 'late'), [], 'the bound has it out of sight');
      nowMs += 2_000;
      assert.deepEqual(
        (await claim(store, 'late')).map(({ payload }) => payload),
        ['old'],
      );
    });

    test('T19: a listener whose connection breaks listens again, and says that it may have missed something', async () => {
      const store = open({ listen: () => new Client({ ...server.config, application_name: 'listener' }) });
      const end = new AbortController();
      const heard: (string | undefined)[] = [];
      let woken = (): void => {};
      const listening = store.listen?.((role) => {
        heard.push(role);
        woken();
      }, end.signal);
      const until = async (isSo: () => boolean): Promise<void> => {
        while (!isSo()) await new Promise<void>((resolve) => (woken = resolve));
      };
      const made = (): number => heard.filter((role) => role === undefined).length;
      await until(() => made() === 1);
      await store.wake('a');
      await until(() => heard.includes('a'));
      await pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'listener'`,
      );
      await until(() => made() === 2);
      await store.wake('b');
      await until(() => heard.includes('b'));
      end.abort();
      await listening;
    });

    test('T25: a worker goes on beside tables of the next version, and not beside older or later ones', async () => {
      await migrate(pool, { schema: 'next' });
      await pool.query('alter table next.job add column later text');
      await pool.query('insert into next.job_version values ($1, now())', [TABLES_VERSION + 1]);
      const store = open({ schema: 'next' });
      await inTransaction(pool, (tx) => store.write(tx, [job('r')]));
      assert.equal((await claim(store, 'r')).length, 1);
      await pool.query('insert into next.job_version values ($1, now())', [TABLES_VERSION + 2]);
      await assert.rejects(claim(open({ schema: 'next' }), 'r'), { code: 'STORE_NOT_MIGRATED' });
      await assert.rejects(claim(open({ schema: 'nowhere' }), 'r'), { code: 'STORE_NOT_MIGRATED' });
      assert.throws(() => checkVersion('x', 1, 2), { code: 'STORE_NOT_MIGRATED' });
    });

    test('T25: a migration beside a long transaction lets the statements behind it through, and is done after it', async () => {
      await migrate(pool, { schema: 'busy' });
      const plan = {
        schema: 'busy',
        table: 'job_version',
        migrations: [
          { version: 1, statements: tablesOf('busy') },
          { version: TABLES_VERSION + 1, statements: ['alter table busy.job add column later text'] },
        ],
      };
      const long = new Client(server.config);
      await long.connect();
      await long.query('begin');
      await long.query('select from busy.job');
      const clock = systemClock();
      let isDone = false;
      const migrating = migrateBy(connectionsOf(pool, clock, 60_000), clock, plan).finally(
        () => (isDone = true),
      );
      const store = open({ schema: 'busy' });
      // Its calls have 5 s each: none waits for the whole transaction.
      const waits = `select count(*) from pg_locks where relation = 'busy.job'::regclass and not granted`;
      while ((await count(waits)) === 0);
      for (let call = 0; call < 20; call += 1) assert.deepEqual(await claim(store, 'r'), []);
      assert.equal(isDone, false);
      await long.query('commit');
      await long.end();
      assert.equal(await migrating, TABLES_VERSION + 1);
      await pool.query('select later from busy.job');
    });

    test('migrations that run at once make the tables once', async () => {
      await Promise.all(Array.from({ length: 4 }, () => migrate(pool, { schema: 'at_once' })));
      assert.equal(await count('select count(*) from at_once.job_version'), TABLES_VERSION);
    });

    test('T30: an account works the roles that it is granted, and no others', async () => {
      await pool.query('create role app_export login; create role app_all login');
      const granted = { app_export: ['export'], app_all: '*' } as const;
      await migrate(pool, { grants: granted });
      await migrate(pool, { grants: granted });
      const [exported, ingested] = await enqueue(
        job('export', { maxAttempts: 1, key: 'export 1' }),
        job('ingest', { key: 'ingest 1' }),
      );
      assert.ok(exported?.kind === 'enqueued' && ingested?.kind === 'enqueued');
      const mine = poolOf({ ...server.config, user: 'app_export' });
      const store = open({}, mine);
      const write = (...list: readonly NewJob[]) => inTransaction(mine, (tx) => store.write(tx, list));
      await assert.rejects(write(job('ingest')), { code: 'STORE_DENIED' });
      assert.deepEqual(await write(job('export', { key: 'export 1' })), [
        { kind: 'repeated', id: exported.id, state: 'ready' },
      ]);
      assert.deepEqual(await write(job('export', { key: 'ingest 1' })), [{ kind: 'conflict', first: '' }]);
      assert.deepEqual([(await store.look()).ready, (await store.look('ingest')).ready], [1, 0]);
      assert.deepEqual(await claim(store, 'ingest'), []);
      assert.equal(await store.cancel(ingested.id), 'tooLate');
      const [run] = await claim(store, 'export');
      assert.equal(run?.id, exported.id);
      const error = { code: 'C', text: 't' };
      const settle = [{ held: { id: run!.id, token: run!.token }, ending: { kind: 'dead', error } as const }];
      assert.equal((await store.exchange('w', 2, { renew: [], settle })).settled[0]?.kind, 'settled');
      assert.deepEqual(
        (await store.dead({ limit: 10 })).items.map(({ id }) => id),
        [exported.id],
      );
      const nightly = { role: 'export', name: 'nightly', cron: '@daily UTC' };
      const [fromMs = 0] = (await store.recurrences([nightly])).madeMs;
      const recurrent = { id: nightly, fromMs, toMs: fromMs + 1, jobs: [job('export', { key: 'nightly' })] };
      assert.deepEqual([await store.recur(recurrent), await store.recur(recurrent)], [true, false]);
      await assert.rejects(store.recurrences([{ ...nightly, role: 'ingest' }]), { code: 'STORE_DENIED' });
      await store.rescue(10);
      await store.tidy();
      assert.ok((await store.vitals(3_600_000)).unseen.length > 0);
      await mine.end();
      const all = poolOf({ ...server.config, user: 'app_all' });
      assert.equal((await claim(open({}, all), 'ingest')).length, 1);
      assert.equal(await count('select max(backlog) as count from jobs.job_sample'), 2, 'of all roles');
      await all.end();
    });

    test('T31: an exchange that gets no answer is abandoned, its connection destroyed, and what it claimed adopted', async () => {
      const proxy = await startHangingProxy(server.port);
      const through = poolOf({ ...server.config, port: proxy.port });
      const store = open({ callTimeout: '300ms' }, through);
      await claim(store, 'none');
      await enqueue(job('hung'));
      proxy.hang();
      const failure = { code: 'STORE_UNAVAILABLE', message: /no answer to an exchange within 300 ms/ };
      await assert.rejects(
        store.exchange('hung', 7, { renew: [], settle: [], claim: query('hung') }),
        failure,
      );
      assert.equal(through.totalCount, 0);
      assert.equal((await store.adopt('hung', 7)).length, 1);
      await through.end();
      await proxy.close();
    });

    /** Blocks that a claim of ten looks at, without keeping it. */
    const blocks = async (
      role: string,
      since: number | null,
      limits?: string,
      isKept = false,
    ): Promise<Readonly<{ read: number; plan: string; claimed: number }>> => {
      const levels = Array.from({ length: 10 }, (_, priority) => ({
        role,
        priority,
        since,
        lease_ms: 30_000,
      }));
      const parts = { renew: false, settle: false, claim: true, suspect: true, limits: limits !== undefined };
      const text = exchangeStatement('"jobs"', parts);
      const client = await pool.connect();
      await client.query('begin');
      const values = ['[]', '[]', JSON.stringify(levels), 10, 60_000, 'w', 1];
      if (limits !== undefined) values.push(limits);
      const running = `select count(*) from jobs.job where state = 1`;
      const before = await client.query<{ count: string }>(running);
      const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, values);
      const after = await client.query<{ count: string }>(running);
      await client.query(isKept ? 'commit' : 'rollback');
      client.release();
      const [{ Plan: plan }] = rows[0]['QUERY PLAN'];
      return {
        read: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
        plan: JSON.stringify(plan),
        claimed: Number(after.rows[0]?.count) - Number(before.rows[0]?.count),
      };
    };
    /** As a worker of a role with one slot asks. */
    const limited = async (role: string, schema = 'jobs') => {
      const roles = [{ role, leaseMs: 30_000, limits: { running: 1 } }];
      const asked = { renew: [], settle: [], claim: { ...query(role), roles } };
      return (await open({ schema }).exchange('w', 1, asked)).claimed;
    };
    /** Claims beside a claim of the same role whose transaction is not over, and ends that one. */
    const besideOpenClaim = async (role: string, schema: string) => {
      await inTransaction(pool, (tx) => open({ schema }).write(tx, [job(role), job(role), job(role)]));
      const first = new Client(server.config);
      await first.connect();
      await first.query('begin');
      const line = JSON.stringify([{ role, running: 1 }]);
      const level = JSON.stringify([{ role, priority: 5, since: null, lease_ms: 30_000 }]);
      const parts = { renew: false, settle: false, claim: true, suspect: true, limits: true };
      const values = ['[]', '[]', level, 10, 60_000, 'first', 1, line];
      await first.query(exchangeStatement(`"${schema}"`, parts), values);
      let isOver = false;
      const second = limited(role, schema).finally(() => (isOver = true));
      const waiting = `select count(*) from pg_locks where locktype = 'advisory' and not granted`;
      while (!isOver && (await count(waiting)) === 0);
      const hasWaited = !isOver;
      const free = (
        await open({ schema }).exchange('free', 1, { renew: [], settle: [], claim: query(role, 1) })
      ).claimed;
      await first.query('commit');
      await first.end();
      return { hasWaited, second: (await second).length, free: free.length };
    };

    test('T35: a claim of a limited role waits for one that is not committed, and counts it; one without limits does not wait', async () => {
      assert.deepEqual(await besideOpenClaim('limited', 'jobs'), { hasWaited: true, second: 0, free: 1 });
    });

    test('T35: without its lock, or counting by the snapshot of its statement, a claim takes too many', async () => {
      const mutants = [
        [
          'unlocked',
          'perform pg_advisory_xact_lock',
          'perform hashtext(one); --',
          { hasWaited: false, second: 1, free: 1 },
        ],
        ['stable', 'VOLATILE', 'STABLE', { hasWaited: true, second: 1, free: 1 }],
      ] as const;
      for (const [schema, from, to, expected] of mutants) {
        await migrate(pool, { schema });
        const text = `select pg_get_functiondef('${schema}.room_of_roles(jsonb)'::regprocedure) as text`;
        const { rows } = await pool.query<{ text: string }>(text);
        // Volatile is the default, which the definition does not name.
        const whole = (rows[0]?.text ?? '').replace('LANGUAGE plpgsql', 'LANGUAGE plpgsql VOLATILE');
        assert.ok(whole.includes(from));
        await pool.query(whole.replace(from, to));
        assert.deepEqual(await besideOpenClaim('limited', schema), expected, schema);
      }
    });

    test('T35: a claim does not read the jobs of a key that has no room, however many there are', async (t) => {
      await pool.query(
        `insert into jobs.job (role, kind, payload, state, priority, run_at, limit_key)
          select 'tenants', 'k', '1', 0, 5, clock_timestamp(), case when n < 40000 then 'crowd' else 'key ' || n % 7 end
          from generate_series(1, 40020) n`,
      );
      await pool.query('vacuum analyze jobs.job');
      const limits = JSON.stringify([{ role: 'tenants', running_per_key: 1 }]);
      const first = await blocks('tenants', null, limits, true);
      const second = await blocks('tenants', null, limits, true);
      assert.deepEqual([first.claimed, second.claimed], [8, 0]);
      for (const { read, plan } of [first, second]) {
        t.diagnostic(`${read} blocks`);
        assert.ok(read <= 800, `${read} blocks`);
        assert.doesNotMatch(plan, /"Node Type":"Seq Scan"[^}]*"Relation Name":"job"/);
      }
      await pool.query(`delete from jobs.job where role = 'tenants'`);
    });

    const fill = (role: string, jobsOfRole: number, state = 0, minutes = state * 1_440) =>
      pool.query(
        `insert into jobs.job (role, kind, payload, state, priority, run_at)
          select $1, 'k', '1', $3, n % 3, clock_timestamp() + $4::float8 * interval '1 minute'
          from generate_series(1, $2::integer) n`,
        [role, jobsOfRole, state, minutes],
      );

    test('a claim reads the index of each level from its first entry, however many jobs there are', async () => {
      await fill('rare', 100);
      await pool.query('vacuum analyze jobs.job');
      const few = await blocks('rare', null);
      await fill('crowd', 60_000);
      await fill('crowd', 20_000, 2);
      await pool.query('vacuum analyze jobs.job');
      const [rare, crowd] = [await blocks('rare', null), await blocks('crowd', null)];
      for (const { read, plan } of [rare, crowd]) {
        assert.ok(read <= 400, `${read} blocks`);
        assert.ok(read <= few.read + 150, `${read} blocks where ${few.read} were enough`);
        assert.match(plan, /"Index Name":"job_ready"/);
        assert.doesNotMatch(plan, /"Node Type":"Seq Scan"[^}]*"Relation Name":"job"/);
      }
      await pool.query(`delete from jobs.job where role in ('rare', 'crowd')`);
    });

    test('T32: under a snapshot that is held, a claim with a bound reads no more than before, and health names the holder', async (t) => {
      const holder = new Client(server.config);
      t.after(() => holder.end());
      await holder.connect();
      await holder.query('begin isolation level repeatable read');
      const { rows } = await holder.query<{ pid: number }>('select pg_backend_pid() as pid');
      await fill('worked', 50);
      const before = await blocks('worked', null);
      for (let round = 0; round < 5; round += 1) {
        await fill('worked', 10_000, 0, -1);
        await pool.query(`delete from jobs.job where role = 'worked'`);
        await pool.query('vacuum jobs.job');
      }
      await fill('worked', 50);
      const nowS = (
        await pool.query<{ s: number }>('select extract(epoch from clock_timestamp())::float8 as s')
      ).rows[0]!.s;
      const [whole, bounded] = [await blocks('worked', null), await blocks('worked', nowS - 1)];
      assert.ok(whole.read > 10 * before.read, `${whole.read} blocks: the dead rows are in the way`);
      assert.ok(bounded.read <= 2 * before.read, `${bounded.read} blocks where ${before.read} were enough`);
      const health = await jobs(open()).health({ snapshotAge: '0ms' });
      assert.equal(health.vitals.snapshot?.holder, `process ${rows[0]?.pid} of postgres`);
      assert.equal(health.problems.at(-1)?.code, 'OLD_SNAPSHOT');
    });

    test('T22: a transaction whose statement hangs is abandoned at once, and holds nothing', async () => {
      await enqueue(job('hangs'));
      const [run] = await claim(open(), 'hangs');
      const begun = await open().begin(run!);
      const hanging = begun.tx.query('select pg_sleep(60)').catch((error: unknown) => error);
      await begun.rollback();
      assert.equal(Reflect.get(Object(await hanging), 'code'), 'STORE_UNAVAILABLE');
      const settle = [{ held: { id: run!.id, token: run!.token }, ending: { kind: 'done' } as const }];
      assert.equal((await open().exchange('w', 2, { renew: [], settle })).settled[0]?.kind, 'settled');
    });

    test('a statement that comes after the end of its transaction is refused', async () => {
      const late: Promise<unknown>[] = [];
      const failed = inTransaction(pool, async (tx) => {
        // Nothing waits for these: the second one comes when the transaction is rolled back.
        const first = tx.query('select pg_sleep(0.1)');
        late.push(first.then(() => tx.query('create table public.late ()')).catch((error: unknown) => error));
        throw new Error('abandoned');
      });
      await assert.rejects(failed, /abandoned/);
      assert.equal(Reflect.get(Object(await late[0]), 'code'), 'TRANSACTION_OVER');
      assert.equal(await count(`select count(*) from pg_class where relname = 'late'`), 0);
    });

    test('a settlement that the database refuses fails alone', async () => {
      await enqueue(job('mixed'), job('mixed'), job('mixed'));
      const store = open();
      const runs = await claim(store, 'mixed');
      const ends = runs.map(({ id, token }, index) => ({
        held: { id, token },
        ending: index === 1 ? { kind: 'dead', error: { code: '\0', text: 't' } } : { kind: 'done' },
      })) as Parameters<typeof store.exchange>[2]['settle'];
      const { settled } = await store.exchange('w', 2, { renew: [], settle: ends });
      assert.deepEqual(
        settled.map(({ kind }) => kind),
        ['settled', 'refused', 'settled'],
      );
      assert.equal((await store.look('mixed')).running, 1);
    });

    test('psql enqueues by one statement, and repeats answer as they do here', async (t) => {
      const { status } = spawnSync('psql', ['--version'], { stdio: 'ignore' });
      if (status !== 0) return t.skip('no psql on the PATH');
      const { host, port, user, database } = server.config;
      const psql = (text: string): string => {
        const flags = [
          '-h',
          host,
          '-p',
          String(port),
          '-U',
          user,
          '-d',
          database,
          '-v',
          'ON_ERROR_STOP=1',
          '-qAt',
        ];
        const ran = spawnSync('psql', [...flags, '-c', text], { encoding: 'utf8' });
        return ran.status === 0 ? ran.stdout.trim() : ran.stderr;
      };
      const text = `select answer, state from jobs.enqueue_job('psql', 'scene', '{"scene": 42}', key => 'scene 42')`;
      assert.deepEqual([psql(text), psql(text)], ['enqueued|', 'repeated|ready']);
      const again = { payload: { scene: 42 }, key: 'scene 42' };
      const [answer] = await enqueue({ ...job('psql', again), kind: 'scene' });
      assert.equal(answer?.kind, 'repeated');
      const [run] = await claim(open(), 'psql');
      assert.deepEqual([run?.payload, run?.kind], [{ scene: 42 }, 'scene']);
      const keyed = `select answer from jobs.enqueue_job('psql', 'k', '1', limit_key => 'customer 7')`;
      assert.equal(psql(keyed), 'enqueued');
      assert.equal(await count(`select count(*) from jobs.job where limit_key = 'customer 7'`), 1);
      assert.match(psql(`select jobs.enqueue_job('no role', 'k', '1')`), /job_role_check/);
      assert.match(
        psql(`select jobs.enqueue_job('r', 'k', '1', key => repeat('x', 1001))`),
        /more than 1000 bytes/,
      );
    });
  });
}
