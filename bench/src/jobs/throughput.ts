/**
 * Trivial jobs a second, beside graphile-worker on the same server: its default with 10 at once, and with a local queue.
 * A round is each side once, in turn, over as many jobs that were all there at its start.
 */
import { Logger, run, runMigrations, type RunnerOptions } from 'graphile-worker';
import { ack } from 'pubsub-guarantees';
import { worker } from 'pubsub-guarantees/jobs';
import { median } from '../median.ts';
import { empty, fill, type Ground, perSecond, type Print, rounded } from './ground.ts';

type Spent = Readonly<{
  perSecond: number;
  /** Of this process and the server, for a job: what another load of the machine changes little. */
  cpuMicros: number | undefined;
}>;
type Side = Readonly<{ name: string; work(jobs: number): Promise<Spent> }>;

const ROUNDS = 5;
const SCHEMA = 'speed';
const quiet = new Logger(() => () => {});

/** Of each side the medians; `ratio` is the median of the rounds'. */
export type Pace = Readonly<{
  sides: Readonly<Record<string, Spent>>;
  ratio: number;
  rounds: readonly number[];
}>;

export async function throughput(
  ground: Ground,
  print: Print,
  jobs: number,
): Promise<Readonly<{ byDefault: Pace; inHand: Pace; inHandOverBatches: Pace }>> {
  await ground.store(SCHEMA);
  await runMigrations({ pgPool: ground.pool, logger: quiet });
  const [ten, twoHundred] = [await ours(ground, 10), await ours(ground, 200)];
  const theirTen = theirs(ground, 'graphile-worker, 10 at once', { concurrency: 10 });
  const localQueue = { size: 200 };
  const queue = theirs(ground, 'graphile-worker, 100 at once, local queue of 200', {
    concurrency: 100,
    preset: { worker: { localQueue } },
  });
  const batches = theirs(ground, 'the same with completions in batches', {
    concurrency: 100,
    preset: { worker: { localQueue, completeJobBatchDelay: 0 } },
  });
  const byDefault = await compared(ten, theirTen, jobs, print);
  const inHand = await compared(twoHundred, queue, jobs, print);
  return { byDefault, inHand, inHandOverBatches: await compared(twoHundred, batches, jobs, print) };
}

/** Both in turn. The first round of each warms up and is not counted. */
async function compared(one: Side, other: Side, jobs: number, print: Print): Promise<Pace> {
  const rounds: Readonly<{ mine: Spent; its: Spent; ratio: number }>[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const count = round === 0 ? Math.ceil(jobs / 10) : jobs;
    const [mine, its] = [await one.work(count), await other.work(count)];
    const ratio = rounded(mine.perSecond / its.perSecond);
    if (round > 0) rounds.push({ mine, its, ratio });
  }
  const mine = medianOf(rounds.map((round) => round.mine));
  const its = medianOf(rounds.map((round) => round.its));
  const ratios = rounds.map(({ ratio }) => ratio);
  print(`  ${one.name}: ${shown(mine)}`);
  print(`  ${other.name}: ${shown(its)}`);
  print(`  ratios of the rounds: ${ratios.join(', ')}`);
  return { sides: { [one.name]: mine, [other.name]: its }, ratio: median(ratios), rounds: ratios };
}

function medianOf(all: readonly Spent[]): Spent {
  const cpu = all.flatMap(({ cpuMicros }) => (cpuMicros === undefined ? [] : [cpuMicros]));
  return {
    perSecond: median(all.map(({ perSecond }) => perSecond)),
    cpuMicros: cpu.length === 0 ? undefined : median(cpu),
  };
}

const shown = ({ perSecond, cpuMicros }: Spent): string =>
  `${perSecond} a second${cpuMicros === undefined ? '' : `, ${cpuMicros} µs of CPU time each`}`;

/** From now until `spent` is called. */
function stopwatch({ cpuMs }: Ground, count: number): () => Spent {
  const [begun, own, server] = [performance.now(), process.cpuUsage(), cpuMs()];
  return () => {
    const milliseconds = performance.now() - begun;
    const { user, system } = process.cpuUsage(own);
    const after = cpuMs();
    const isKnown = server !== undefined && after !== undefined;
    return {
      perSecond: perSecond(count, milliseconds),
      cpuMicros: isKnown ? Math.round((user + system + (after - server) * 1_000) / count) : undefined,
    };
  };
}

async function ours(ground: Ground, concurrency: number): Promise<Side> {
  const { pool, store } = ground;
  const jobStore = await store(SCHEMA);
  return {
    name: `jobs, ${concurrency} at once`,
    async work(count) {
      await empty(pool, SCHEMA);
      await fill(pool, SCHEMA, { role: 'r', count });
      await pool.query(`vacuum analyze "${SCHEMA}".job`);
      const done = counting(count);
      const spent = stopwatch(ground, count);
      const running = worker(
        jobStore,
        {
          r: {
            runTimeout: '1m',
            handle: {
              async k() {
                done.one();
                return ack();
              },
            },
          },
        },
        { concurrency, drainOnSigterm: false },
      );
      await done.all;
      const found = spent();
      await running.stop();
      return found;
    },
  };
}

function theirs(ground: Ground, name: string, options: RunnerOptions): Side {
  const { pool } = ground;
  return {
    name,
    async work(count) {
      await pool.query('truncate graphile_worker._private_jobs');
      await pool.query(
        `select graphile_worker.add_job('k', json_build_object('n', n)) from generate_series(1, $1::integer) n`,
        [count],
      );
      await pool.query('vacuum analyze graphile_worker._private_jobs');
      const done = counting(count);
      const spent = stopwatch(ground, count);
      const runner = await run({
        ...options,
        pgPool: pool,
        logger: quiet,
        noHandleSignals: true,
        taskList: { k: async () => done.one() },
      });
      await done.all;
      const found = spent();
      await runner.stop();
      return found;
    },
  };
}

function counting(count: number): Readonly<{ one(): void; all: Promise<void> }> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = count;
  return {
    all: promise,
    one() {
      left -= 1;
      if (left === 0) resolve();
    },
  };
}
