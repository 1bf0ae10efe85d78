/** The outbox in a real Postgres: the contract, and messages of jobs that leave with their completion. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silent } from '../../../shared/src/log.ts';
import { inTransaction, jobOutbox, migrate, postgresJobs } from '../../../shared/src/jobs/postgres.ts';
import { complete } from '../../../shared/src/jobs/outcome.ts';
import { worker } from '../../../shared/src/jobs/worker.ts';
import { outboxContract } from '../../../shared/src/outbox/contract.ts';
import { outbox } from '../../../shared/src/outbox/outbox.ts';
import { migrateOutbox, postgresOutbox } from '../../../shared/src/outbox/postgres.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import { memoryPublisher } from '../../../shared/src/testing/memory-publisher.ts';
import { poolOf } from '../jobs/postgres-jobs.ts';
import { postgresBinaries, startPostgres } from '../servers/postgres-server.ts';

const [binaries] = postgresBinaries();
const PROJECT = { projectId: 'shop' } as const;

async function open() {
  assert.ok(binaries !== undefined);
  const server = await startPostgres(binaries);
  const pool = poolOf(server.config);
  const close = async (): Promise<void> => {
    await pool.end();
    await server.close();
  };
  await migrateOutbox(pool).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return { pool, store: postgresOutbox(pool, PROJECT), close };
}

if (binaries === undefined) {
  test('the outbox in Postgres', { skip: 'no postgres on this machine' }, () => {});
} else {
  outboxContract(`Postgres ${binaries.name}`, async () => {
    const { pool, store, close } = await open();
    return { store, transact: (work) => inTransaction(pool, work), close };
  });

  test('an error of a row fails its transaction, whether or not the caller waits for the rows', async (t) => {
    const { pool, store, close } = await open();
    t.after(close);
    const message = { topic: 't', data: Buffer.from('x'), attributes: {} };
    const add = (id: string, waits: boolean) =>
      inTransaction(pool, async (tx) => {
        const slot = await outbox(store).reserve(tx, { id });
        // What the library does not do: the same row twice.
        await tx.query(
          `insert into outbox.outbox_row (id, topic, message, slot_count, shard, created_ms)
            select encode(sha256('x'), 'hex'), 't', '', 1, 0, 0`,
        );
        store.writeSlot(tx, {
          rows: [
            {
              id: '2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881',
              topic: 't',
              message: Buffer.alloc(1),
            },
          ],
        });
        if (waits) await store.written(tx);
        return slot.isRepeat;
      });
    await assert.rejects(add('a', true), { code: 'STORE_REFUSED' });
    await assert.rejects(add('b', false), { code: 'STORE_REFUSED' });
    const { rows } = await pool.query('select from outbox.outbox_row');
    assert.equal(rows.length, 0);
    await inTransaction(pool, async (tx) => (await outbox(store).reserve(tx)).add(message));
    assert.equal((await pool.query('select from outbox.outbox_row')).rows.length, 1);
  });

  test('what a job publishes leaves with its completion, once, and what was sent is deleted after its retention', async (t) => {
    const { pool, store, close } = await open();
    t.after(close);
    await migrate(pool);
    const jobs = postgresJobs(pool, { outbox: jobOutbox(store), log: silent });
    await jobs.submit([1, 2, 3].map((payload) => ({ role: 'r', kind: 'k', payload })));
    let ended = 0;
    const all = Promise.withResolvers<void>();
    const running = worker(
      jobs,
      {
        r: {
          runTimeout: '1m',
          retry: { min: '1ms' },
          handle: {
            async k(job) {
              if (job.payload === 2 && job.attempt === 1) throw new Error('once more');
              ended += 1;
              if (ended === 3) all.resolve();
              return complete({
                publish: [
                  {
                    topic: 'scenes',
                    data: Buffer.from(`scene ${String(job.payload as number)}`),
                    attributes: {},
                  },
                ],
              });
            },
          },
        },
      },
      { concurrency: 2, poll: '20ms', drainOnSigterm: false, log: silent },
    );
    await all.promise;
    await running.stop();
    const publisher = memoryPublisher();
    const { signal } = new AbortController();
    const first = relay(store, publisher, { log: silent });
    assert.equal((await first.sweep({ signal })).done, 3);
    assert.equal((await first.sweep({ signal })).done, 0);
    const texts = publisher.published.map(({ data }) => Buffer.from(data).toString());
    assert.deepEqual(
      texts.toSorted((one, other) => one.localeCompare(other)),
      ['scene 1', 'scene 2', 'scene 3'],
    );
    assert.equal(publisher.published[0]?.topic, 'projects/shop/topics/scenes');
    assert.equal(await store.tidy(), 0);
    assert.equal(await postgresOutbox(pool, { ...PROJECT, retention: '0ms' }).tidy(), 3);
  });
}
