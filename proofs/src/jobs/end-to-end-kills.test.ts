/**
 * From a push to an effect, through a job: push → `enqueueing` → worker → row of the outbox in the transaction that completes
 * the job → relay → a subscriber with `once`. Each part is a process of its own, and each is killed while messages
 * come in, some of them twice: one job, one row of the worker's and one effect for each message.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { startFirestore, startPubsub, systemClock } from 'pubsub-guarantees-emulator';
import { silent } from '../../../shared/src/log.ts';
import { migrate, postgresJobs } from '../../../shared/src/jobs/postgres.ts';
import { migrateOutbox } from '../../../shared/src/outbox/postgres.ts';
import { end, heard } from '../servers/child-processes.ts';
import { fastClock } from '../servers/fast-clock.ts';
import { postgresBinaries, startPostgres } from '../servers/postgres-server.ts';
import { type Begun, type Part, PARTS, type PartTask, PROJECT } from './end-to-end-process.ts';
import { poolOf } from './postgres-jobs.ts';

process.env['METADATA_SERVER_DETECTION'] ??= 'none';

/** Each part once by default, since each costs the start of a process; `TEST_KILLS` takes more. */
const KILLS = Number(process.env['TEST_KILLS'] ?? PARTS.length);
/** Ack deadlines and pauses of pushes pass this much faster, so that what a killed process had comes back soon. */
const FASTER = 4;
const BACKLOG = 16;
/** Far above what it needs: a busy machine takes many seconds for the start of a process. */
const LIMIT_MS = 300_000 + 60_000 * KILLS;
const TITLE = `${KILLS} kills from a push to its effect: each message has one job and one effect`;

const [binaries] = postgresBinaries();
if (binaries === undefined) {
  test(TITLE, { skip: 'no postgres on this machine' }, () => {});
} else {
  test(TITLE, { timeout: LIMIT_MS }, async (t) => {
    const compiled = await mkdtemp(join(tmpdir(), 'end-to-end-'));
    const children = new Set<ChildProcess>();
    const closers: (() => Promise<unknown>)[] = [() => rm(compiled, { recursive: true, force: true })];
    t.after(async () => {
      await Promise.all([...children].map(end));
      for (const close of closers.toReversed()) await close();
    });
    const started = async <Server extends { close(): Promise<unknown> }>(starting: Promise<Server>) => {
      const server = await starting;
      closers.push(() => server.close());
      return server;
    };
    const [server, pubsubServer, firestoreServer] = await Promise.all([
      started(startPostgres(binaries)),
      started(startPubsub({ clock: fastClock(systemClock(), FASTER) })),
      started(startFirestore({ clock: systemClock() })),
    ]);
    const pool = poolOf(server.config);
    closers.push(() => pool.end());
    const pubsub = new PubSub({ apiEndpoint: pubsubServer.address, projectId: PROJECT });
    closers.push(() => pubsub.close());
    const [host = '', firestorePort] = firestoreServer.address.split(':');
    const firestore = new Firestore({ projectId: PROJECT, host, port: Number(firestorePort), ssl: false });
    closers.push(() => firestore.terminate());

    await migrate(pool);
    await migrateOutbox(pool);
    await pool.query('create table public.worked (job_id bigint not null)');
    const [orders] = await pubsub.createTopic('orders');
    const [intake] = await orders.createSubscription('intake');
    const [results] = await pubsub.createTopic('results');
    await results.createSubscription('results', { ackDeadlineSeconds: 10 });

    const load = async (part: Part): Promise<ChildProcess> => {
      const task: PartTask = {
        part,
        postgres: server.config,
        pubsub: pubsubServer.address,
        firestore: firestoreServer.address,
        leaseMs: 2_000,
      };
      const child = fork(new URL('./end-to-end-process.ts', import.meta.url), [JSON.stringify(task)], {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
        env: { NODE_COMPILE_CACHE: compiled, ...process.env },
      });
      children.add(child);
      await heard(child);
      return child;
    };
    const begin = async (child: ChildProcess): Promise<ChildProcess> => {
      const begun = heard(child);
      child.send('work');
      const [{ pushEndpoint }] = (await begun) as [Begun];
      if (pushEndpoint !== undefined) await intake.modifyPushConfig({ pushEndpoint });
      return child;
    };

    const running = new Map<Part, ChildProcess>();
    await Promise.all(PARTS.map(async (part) => running.set(part, await begin(await load(part)))));
    const stop = new AbortController();
    let messages = 0;
    const publish = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        // No more than the parts do, however slow the machine is: the rest would only take time in the end.
        if (pubsubServer.stats().backlog < BACKLOG) {
          const text = `message ${(messages += 1)}`;
          const message = { data: Buffer.from(text), attributes: { dedupId: text } };
          // Every third is published twice.
          const copies = messages % 3 === 0 ? [message, message] : [message];
          await Promise.all(copies.map((copy) => orders.publishMessage(copy)));
        }
        await pause(30);
      }
    };
    const killed = new Map<Part, number>(PARTS.map((part) => [part, 0]));
    const kill = async (part: Part, times: number): Promise<void> => {
      for (let count = 0; count < times; count += 1) {
        const successor = await load(part);
        await pause(Math.random() * 500);
        const victim = running.get(part);
        assert.ok(victim !== undefined);
        await end(victim);
        assert.equal(victim.signalCode, 'SIGKILL', `the ${part} had ended by itself`);
        children.delete(victim);
        killed.set(part, count + 1);
        running.set(part, await begin(successor));
      }
    };
    const share = (index: number): number => Math.floor((KILLS + PARTS.length - 1 - index) / PARTS.length);
    const killing = Promise.all(PARTS.map((part, index) => kill(part, share(index))));
    await Promise.all([publish(), killing.finally(() => stop.abort())]);

    const store = postgresJobs(pool, { log: silent });
    const count = async (from: string): Promise<number> =>
      Number((await pool.query<{ count: string }>(`select count(*) from ${from}`)).rows[0]?.count);
    let relaunched = 0;
    const isIdle = (): boolean => {
      const { outstanding, backlog } = pubsubServer.stats();
      return outstanding + backlog === 0;
    };
    const areDone = async (): Promise<boolean> => {
      // What three kills hit is dead, as it should be; an operator has it run again.
      const { items } = await store.dead({ limit: 100 });
      relaunched += await store.relaunch(items.map(({ id }) => id));
      return (await count('jobs.job')) + (await count('jobs.job_dead')) === 0;
    };
    // In the order of the way: what one part has no more of comes back to no earlier one.
    const isPublished = async (): Promise<boolean> =>
      (await count('outbox.outbox_row where due_ms is not null')) === 0;
    while (!isIdle() || !(await areDone()) || !(await isPublished()) || !isIdle()) await pause(100);

    const worked = await pool.query<{ count: string }>('select count(*) from public.worked group by job_id');
    const effects = await firestore.collection('effects').get();
    const byText = Map.groupBy(effects.docs, (document) => String(document.get('text')));
    const again = await count('jobs.job_log where attempts > 1');
    t.diagnostic(
      `${[...killed].map(([part, count]) => `${part} killed ${count}`).join(', ')}; ${messages} messages, ${worked.rows.length} jobs, ${again} of them run again, ` +
        `${relaunched} dead and relaunched, ${effects.size} effects`,
    );
    assert.equal(
      [...killed.values()].reduce((sum, count) => sum + count, 0),
      KILLS,
    );
    assert.ok(messages > 0, 'messages came while parts were killed');
    assert.deepEqual(
      worked.rows.filter((row) => row.count !== '1'),
      [],
      'no job was worked twice',
    );
    assert.equal(worked.rows.length, messages, 'each message is one job');
    const wrong = Array.from({ length: messages }, (_, index) => `message ${index + 1}`).filter(
      (text) => byText.get(text)?.length !== 1,
    );
    assert.deepEqual(wrong, [], 'each message has one effect');
    assert.equal(effects.size, messages);
  });
}
