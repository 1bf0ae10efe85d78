/**
 * A claim of one job of a rare role behind many ready jobs of another one: beside the one statement that others use, with
 * `role = any(…)` and the order of priority and time, over the index that fits it best.
 */
import { median } from '../median.ts';
import { fill, type Ground, type Print, rounded, timed } from './ground.ts';

const SCHEMA = 'rare';
const ROUNDS = 5;
/** Claims of a round on each side: the slow one takes a second each. */
const CLAIMS = 5;

/** Over an index of filter and order; and over one that has the role in it as well, behind what orders. */
const INDEXES = {
  order: '(priority desc, scheduled_at)',
  orderAndRole: '(priority desc, scheduled_at, role)',
} as const;

const CLAIM = `update peer.task set status = 'running', taken_at = now() where id = (
  select id from peer.task where status = 'ready' and scheduled_at <= now() and role = any ($1)
  order by priority desc, scheduled_at for update skip locked limit 1) returning *`;

type Compared = Readonly<{ oursMs: number; theirsMs: number; ratio: number }>;

export async function rareRole(
  { pool, store }: Ground,
  print: Print,
  rows: number,
): Promise<Readonly<Record<keyof typeof INDEXES, Compared>>> {
  const jobs = await store(SCHEMA);
  await fill(pool, SCHEMA, { role: 'common', count: rows });
  await fill(pool, SCHEMA, { role: 'rare', count: 10 });
  await pool.query('create schema peer');
  await pool.query(
    `create table peer.task (id bigserial primary key, status text not null default 'ready', role text not null,
      priority integer not null default 5, scheduled_at timestamptz not null default clock_timestamp(), payload jsonb,
      taken_at timestamptz)`,
  );
  for (const [role, count] of [
    ['common', rows],
    ['rare', 10],
  ] as const) {
    await pool.query(
      `insert into peer.task (role, payload) select $1, jsonb_build_object('n', n) from generate_series(1, $2::integer) n`,
      [role, count],
    );
  }
  await pool.query(`vacuum analyze "${SCHEMA}".job`);

  let call = 0;
  const claimOurs = async (): Promise<number> => {
    const claim = { roles: [{ role: 'rare', leaseMs: 30_000 }], limit: 1, suspect: true, ageingMs: 60_000 };
    let claimed: Awaited<ReturnType<typeof jobs.exchange>>['claimed'] = [];
    const spent = await timed(async () => {
      ({ claimed } = await jobs.exchange('bench', (call += 1), { renew: [], settle: [], claim }));
    });
    if (claimed.length !== 1) throw new Error('the rare job was not claimed');
    const settle = claimed.map(({ id, token }) => ({
      held: { id, token },
      ending: { kind: 'released' } as const,
    }));
    await jobs.exchange('bench', (call += 1), { renew: [], settle });
    return spent;
  };
  const claimTheirs = async (): Promise<number> => {
    let count: number | null = 0;
    const spent = await timed(async () => {
      ({ rowCount: count } = await pool.query(CLAIM, [['rare']]));
    });
    if (count !== 1) throw new Error('the rare task was not claimed');
    await pool.query(`update peer.task set status = 'ready' where status = 'running'`);
    return spent;
  };

  const compared = async (name: keyof typeof INDEXES): Promise<Compared> => {
    await pool.query(`drop index if exists peer.task_ready`);
    await pool.query(`create index task_ready on peer.task ${INDEXES[name]} where status = 'ready'`);
    await pool.query('vacuum analyze peer.task');
    const rounds: Compared[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const [ours, theirs]: [number[], number[]] = [[], []];
      for (let claim = 0; claim < CLAIMS; claim += 1) {
        ours.push(await claimOurs());
        theirs.push(await claimTheirs());
      }
      const [oursMs, theirsMs] = [median(ours), median(theirs)];
      rounds.push({
        oursMs: rounded(oursMs),
        theirsMs: rounded(theirsMs),
        ratio: rounded(theirsMs / oursMs),
      });
    }
    const of = (figure: keyof Compared): number => median(rounds.map((round) => round[figure]));
    const found = { oursMs: of('oursMs'), theirsMs: of('theirsMs'), ratio: of('ratio') };
    print(`  index ${INDEXES[name]}: ${found.oursMs} ms, with role = any ${found.theirsMs} ms`);
    return found;
  };
  const found = { order: await compared('order'), orderAndRole: await compared('orderAndRole') };
  await pool.query(`drop schema peer cascade`);
  await pool.query(`drop schema "${SCHEMA}" cascade`);
  return found;
}
