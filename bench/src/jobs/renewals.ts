/**
 * How many renewals of leases are HOT: updates that change no index, and leave nothing for vacuum but what the page cleans
 * up by itself (https://www.postgresql.org/docs/current/storage-hot.html). Counted by the server, for renewals alone.
 */
import { fill, type Ground, type Print, rounded } from './ground.ts';

const SCHEMA = 'renewed';
const WORKERS = 10;
/** Jobs that each has in hand, among others that are ready. */
const EACH = 20;
const READY = 10_000;
const RUNNING = WORKERS * EACH;
const LEASE_MS = 600_000;

export async function renewals(
  { pool, store }: Ground,
  print: Print,
  rounds: number,
): Promise<Readonly<{ renewals: number; hot: number; percent: number }>> {
  const jobs = await store(SCHEMA);
  await fill(pool, SCHEMA, { role: 'r', count: READY });
  const claim = { roles: [{ role: 'r', leaseMs: LEASE_MS }], limit: EACH, suspect: false, ageingMs: 60_000 };
  const workers: (readonly Readonly<{ id: string; token: string; leaseMs: number }>[])[] = [];
  for (let worker = 0; worker < WORKERS; worker += 1) {
    const { claimed } = await jobs.exchange(`worker ${worker}`, 1, { renew: [], settle: [], claim });
    if (claimed.length !== EACH) throw new Error(`${claimed.length} jobs were claimed`);
    workers.push(claimed.map(({ id, token }) => ({ id, token, leaseMs: LEASE_MS })));
  }
  const counts = async (least: number): Promise<Readonly<{ all: number; hot: number }>> => {
    for (;;) {
      // The server's processes send their counts with a delay of up to some seconds.
      const { rows } = await pool.query<{ updates: string; hot: string }>(
        `select n_tup_upd as updates, n_tup_hot_upd as hot from pg_stat_user_tables where schemaname = $1 and relname = 'job'`,
        [SCHEMA],
      );
      const [all, hot] = [Number(rows[0]?.updates), Number(rows[0]?.hot)];
      if (all >= least) return { all, hot };
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  const before = await counts(RUNNING);
  for (let round = 1; round <= rounds; round += 1) {
    for (const [worker, renew] of workers.entries()) {
      const { renewed } = await jobs.exchange(`worker ${worker}`, round + 1, { renew, settle: [] });
      if (renewed.some(({ kind }) => kind !== 'renewed')) throw new Error('a lease was lost');
    }
  }
  const after = await counts(before.all + rounds * RUNNING);
  const [all, hot] = [after.all - before.all, after.hot - before.hot];
  const percent = rounded((hot / all) * 100);
  print(`  ${all} renewals by ${WORKERS} workers of ${EACH} jobs each, ${hot} of them HOT: ${percent} %`);
  return { renewals: all, hot, percent };
}
