/**
 * The largest day of a city platform's task table, 9,207 jobs with payloads of 220 to 360 bytes, in two minutes: alone, for
 * the size that the table has afterwards; then beside a backfill of 100,000 of a lower priority, for the time until a start.
 */
import { ack } from 'pubsub-guarantees';
import { jobs, type NewJob, worker } from 'pubsub-guarantees/jobs';
import { limits } from '../limits.ts';
import { type Ground, openGround, type Print, type Store } from './ground.ts';

const DAY = 9_207;
const DAY_MS = 120_000;
const BACKFILL = 100_000;
const WORKERS = 10;
/** A job's work: with ten at once the backfill takes as long as the day. */
const WORK_MS = 10;
const TICK_MS = 100;
const SCHEMA = 'soak';

export async function jobsSoak(print: Print, size: number): Promise<object> {
  const ground = await openGround(print);
  if (ground === undefined) return { skipped: 'postgres' };
  try {
    const { atMost, missed } = limits(print);
    const of = (whole: number): number => Math.max(1, Math.round(whole * size));
    const store = await ground.store(SCHEMA);
    const day = { jobs: of(DAY), milliseconds: of(DAY_MS) };
    print(`${day.jobs} jobs in ${day.milliseconds / 1_000} s:`);
    const alone = await passDay(ground, store, day, 0);
    print(`  ${alone.tableKb} KB of table and indexes, 95 % began within ${alone.pickUpP95Ms} ms`);
    atMost('megabytes of the table of jobs after the day', alone.tableKb / 1_024, 4);
    const beside = await passDay(ground, store, day, of(BACKFILL));
    print(`beside a backfill of ${of(BACKFILL)}, of which ${beside.backfillLeft} were left:`);
    print(`  ${beside.tableKb} KB of table and indexes, 95 % began within ${beside.pickUpP95Ms} ms`);
    atMost('seconds within which 95 % of the jobs of the day began', beside.pickUpP95Ms / 1_000, 5);
    return { postgres: ground.version, size, alone, beside, missed: missed() };
  } finally {
    await ground.close();
  }
}

type Passed = Readonly<{ tableKb: number; pickUpP95Ms: number; lateMs: number; backfillLeft: number }>;

async function passDay(
  { pool }: Ground,
  store: Store,
  day: Readonly<{ jobs: number; milliseconds: number }>,
  backfill: number,
): Promise<Passed> {
  await pool.query(`truncate "${SCHEMA}".job, "${SCHEMA}".job_log, "${SCHEMA}".job_key`);
  const queue = jobs(store);
  const run = backfill === 0 ? 'alone' : 'beside';
  const job = (kind: string, number: number, priority: 2 | 5): NewJob => ({
    role: 'ingest',
    kind,
    payload: payloadOf(number),
    key: `${run}:${kind}:${number}`,
    priority,
  });
  for (let from = 0; from < backfill; from += 5_000) {
    const length = Math.min(5_000, backfill - from);
    await queue.submit(Array.from({ length }, (_, index) => job('past', from + index, 2)));
  }
  const work = async () => {
    await new Promise((resolve) => setTimeout(resolve, WORK_MS));
    return ack();
  };
  const roles = { ingest: { runTimeout: '1m', handle: { day: work, past: work } } } as const;
  const running = worker(store, roles, { concurrency: WORKERS, drainOnSigterm: false });
  const begun = performance.now();
  let sent = 0;
  while (sent < day.jobs) {
    const due = Math.min(day.jobs, Math.ceil(((performance.now() - begun) / day.milliseconds) * day.jobs));
    if (due > sent) {
      await queue.submit(Array.from({ length: due - sent }, (_, index) => job('day', sent + index, 5)));
      await queue.wake('ingest');
      sent = due;
    }
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  }
  const sentMs = performance.now() - begun;
  const count = async (text: string): Promise<number> =>
    Number((await pool.query<{ value: string }>(`select (${text}) as value`)).rows[0]?.value);
  while ((await count(`select count(*) from "${SCHEMA}".job where kind = 'day'`)) > 0)
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  await running.stop();
  return {
    tableKb: Math.round((await count(`pg_total_relation_size('"${SCHEMA}".job')`)) / 1_024),
    pickUpP95Ms: await count(
      `select percentile_disc(0.95) within group (order by picked_up_ms) from "${SCHEMA}".job_log where kind = 'day'`,
    ),
    lateMs: Math.round(sentMs - day.milliseconds),
    backfillLeft: await count(`select count(*) from "${SCHEMA}".job`),
  };
}

/** 220 to 360 bytes as JSON: a reference to an object of a store, as the account has it. */
function payloadOf(number: number): Readonly<Record<string, string | number>> {
  const start = {
    provider: 'landsat',
    object: `scene-${number}`,
    window: '2030-01-31T00:00:00Z/PT1H',
    number,
  };
  const missing = 220 + (number % 140) - JSON.stringify({ ...start, path: '' }).length;
  return { ...start, path: 'x'.repeat(Math.max(0, missing)) };
}
