/**
 * Claims while a transaction holds a snapshot and so the index entries of all jobs that were worked meanwhile, beside claims
 * in tables without a dead row. Both in turn, in the same server, under the same snapshot.
 */
import { ack } from 'pubsub-guarantees';
import { worker } from 'pubsub-guarantees/jobs';
import { median } from '../median.ts';
import { empty, fill, type Ground, type Print, rounded, type Store, timed } from './ground.ts';

const ROUNDS = 5;
const CLAIMS = 100;
const BATCH = 10;

type Figures = Readonly<{ cleanMs: number; deadMs: number; deadP95Ms: number; ratio: number }>;

export async function oldSnapshot({ pool, store }: Ground, print: Print, deadRows: number): Promise<Figures> {
  const [clean, dead] = [await store('clean'), await store('dead')];
  const holder = await pool.connect();
  try {
    await holder.query('begin isolation level repeatable read');
    await holder.query('select txid_current()');
    await work(dead, deadRows, () => fill(pool, 'dead', { role: 'r', count: deadRows }));
    const rounds: Readonly<{ cleanMs: number; deadMs: number; deadP95Ms: number }>[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      // Its own dead rows would count against it: the snapshot holds them as well.
      await empty(pool, 'clean');
      const one = await claims(clean, () => fill(pool, 'clean', { role: 'r', count: CLAIMS * BATCH }));
      const other = await claims(dead, () => fill(pool, 'dead', { role: 'r', count: CLAIMS * BATCH }));
      rounds.push({ cleanMs: median(one), deadMs: median(other), deadP95Ms: p95(other) });
    }
    const of = (figure: 'cleanMs' | 'deadMs' | 'deadP95Ms'): number =>
      rounded(median(rounds.map((round) => round[figure])));
    const ratio = rounded(median(rounds.map(({ cleanMs, deadMs }) => deadMs / cleanMs)));
    const figures = { cleanMs: of('cleanMs'), deadMs: of('deadMs'), deadP95Ms: of('deadP95Ms'), ratio };
    print(
      `  a claim of ${BATCH}: ${figures.cleanMs} ms, behind ${deadRows} dead rows ${figures.deadMs} ms (95 %: ${figures.deadP95Ms} ms)`,
    );
    return figures;
  } finally {
    await holder.query('rollback');
    holder.release();
  }
}

const p95 = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length * 0.95)] ?? Number.NaN;

async function work(store: Store, count: number, enqueue: () => Promise<void>): Promise<void> {
  await enqueue();
  let left = count;
  const all = Promise.withResolvers<void>();
  const k = async () => {
    left -= 1;
    if (left === 0) all.resolve();
    return ack();
  };
  const options = { concurrency: 200, drainOnSigterm: false } as const;
  const running = worker(store, { r: { runTimeout: '1m', handle: { k } } }, options);
  await all.promise;
  await running.stop();
}

/** Milliseconds of each claim; each is settled as done before the next one. */
async function claims(store: Store, enqueue: () => Promise<void>): Promise<readonly number[]> {
  await enqueue();
  const spent: number[] = [];
  const owner = `bench ${Math.random()}`;
  const claim = { roles: [{ role: 'r', leaseMs: 30_000 }], limit: BATCH, suspect: true, ageingMs: 60_000 };
  for (let call = 1; call <= CLAIMS * 2; call += 2) {
    let claimed: Awaited<ReturnType<Store['exchange']>>['claimed'] = [];
    spent.push(
      await timed(async () => {
        ({ claimed } = await store.exchange(owner, call, { renew: [], settle: [], claim }));
      }),
    );
    const settle = claimed.map(({ id, token }) => ({
      held: { id, token },
      ending: { kind: 'done' } as const,
    }));
    await store.exchange(owner, call + 1, { renew: [], settle });
  }
  return spent;
}
