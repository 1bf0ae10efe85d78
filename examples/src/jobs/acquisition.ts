/* oxlint-disable no-console -- an example shows what it does */
/**
 * Jobs: scenes of a satellite are acquired, an indicator is computed of each, and a sheet is exported. A person at a
 * console asks for one of them, the calendar for three, and a backfill for twelve: they are worked in that order.
 *
 * Run it beside a Postgres, in which it makes the schemas `jobs` and `acquisition`:
 *
 *   DATABASE_URL=postgresql://… npm exec -- node --conditions=source examples/src/jobs/acquisition.ts
 */
import pg from 'pg';
import { jobs, type NewJob, worker } from 'pubsub-guarantees/jobs';
import { inTransaction, migrate, postgresJobs } from 'pubsub-guarantees/jobs/postgres';
import { PRIORITY, roles, TABLES } from './roles.ts';

const url = process.env['DATABASE_URL'];
if (url === undefined) {
  process.stderr.write('DATABASE_URL is not set; accepted: postgresql://user@host:5432/database\n');
  process.exit(1);
}
const pool = new pg.Pool({ connectionString: url });
await migrate(pool);
await pool.query(TABLES);
const store = postgresJobs(pool, { listen: () => new pg.Client({ connectionString: url }) });
const queue = jobs(store);

/** Provider, object and window are the key: what is asked for twice is one job. */
const acquisition = (scene: number, asked: keyof typeof PRIORITY): NewJob => ({
  role: 'ingest',
  kind: 'scene',
  payload: { scene },
  key: `ingest:landsat:${scene}`,
  priority: PRIORITY[asked],
});

async function ask(asked: keyof typeof PRIORITY, scenes: readonly number[]): Promise<void> {
  // In a transaction of the caller's own: the request is there with what it is about, or neither is.
  const answers = await inTransaction(pool, (tx) =>
    queue.enqueue(
      tx,
      scenes.map((scene) => acquisition(scene, asked)),
    ),
  );
  console.log(`${asked}: ${answers.map(({ kind }) => kind).join(' ')}`);
}

// The least urgent is asked for first, so that its place is not its time.
await ask(
  'backfill',
  Array.from({ length: 12 }, (_, index) => index + 1),
);
await ask('scheduled', [501, 502, 503]);
await ask('console', [900]);
await ask('console', [900]);

const running = worker(store, roles, { drainOnSigterm: false });
await queue.wake('ingest');
for (;;) {
  const { ready, waiting, running: now, dead } = await queue.look();
  if (ready + waiting + now === 0) {
    console.log(`done, and ${dead} dead`);
    break;
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
}
await running.stop();

const { rows } = await pool.query<{ scene: number; text: string }>(
  'select scene, text from acquisition.export order by place',
);
console.log(`exported in this order: ${rows.map(({ scene }) => scene).join(' ')}`);
console.log(rows[0]?.text);
const late = await pool.query<{ scene: number; runs: number }>(
  'select scene, runs from acquisition.scene where runs > 1',
);
for (const { scene, runs } of late.rows) console.log(`scene ${scene} was there at the run number ${runs}`);
await pool.end();
