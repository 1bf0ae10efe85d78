/**
 * `npm run bench -- --list` names the benchmarks, `npm run bench -- NAME` runs one, and `--size 0.1` behind it a tenth of
 * one that has sizes. Both sides of every ratio run in the same call, in turn, because machines are noisy; the last line
 * is one JSON object with the figures.
 */
import { coldStart } from './cold-start/cold-start.ts';
import { inOrderBench } from './in-order/in-order.ts';
import { jobsBench } from './jobs/jobs.ts';
import { jobsSoak } from './jobs/soak.ts';
import { later } from './later/later.ts';
import { memory } from './memory/memory.ts';
import { onceFirestore } from './once-firestore/once-firestore.ts';
import { onceRedis } from './once-redis/once-redis.ts';
import { orderCost } from './order-cost/order-cost.ts';
import { ready } from './ready/ready.ts';
import { realTime } from './real-time/real-time.ts';
import { sagasBench } from './sagas/sagas.ts';
import { sequencerBench } from './sequencer/sequencer.ts';
import { sideBySide } from './side-by-side/side-by-side.ts';
import { soak } from './soak/soak.ts';
import { underLoad } from './under-load/under-load.ts';

type Benchmark = Readonly<{
  what: string;
  /** `size` is given to those that have sizes: 1 is the whole. */
  run(print: (line: string) => void, size: number): Promise<object>;
  hasSizes?: boolean;
}>;

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  'cold-start': {
    what: 'process start to first answered push of each packaged function, against a hello-world and its clients alone',
    run: coldStart,
  },
  'in-order': {
    what: 'messages of one key in order, against the algorithm of an article and native ordering keys',
    run: inOrderBench,
  },
  jobs: {
    what: 'jobs in Postgres: throughput against graphile-worker, a rare role, an old snapshot, renewals',
    run: jobsBench,
    hasSizes: true,
  },
  'jobs-soak': {
    what: 'a day of 9,207 jobs in two minutes, alone and beside a backfill of 100,000',
    run: jobsSoak,
    hasSizes: true,
  },
  later: { what: 'lateness, scheduled messages a second, and the cost of pending tasks', run: later },
  memory: {
    what: 'large messages at once, against the memory that functions and the republisher are deployed with',
    run: memory,
  },
  'once-firestore': {
    what: 'once over Firestore: calls, time and bursts of duplicates, against a get-then-set transaction',
    run: onceFirestore,
  },
  'once-redis': {
    what: 'once over Redis: speed, CPU time and memory, against raw commands and a peer',
    run: onceRedis,
  },
  'order-cost': {
    what: 'Firestore operations per message in order, counted on the wire; many keys beside one',
    run: orderCost,
  },
  ready: { what: 'time until the servers answer, against the official Java emulators', run: ready },
  'real-time': {
    what: 'real time of what takes days or a rate by the clock of the local stack, each under 300 ms',
    run: realTime,
  },
  sagas: {
    what: 'sagas of four steps: how many a second, how long each takes, against the same steps by hand; operations a step',
    run: sagasBench,
  },
  sequencer: {
    what: 'numbers a second of one hot key, against a transaction for each; the outbox',
    run: sequencerBench,
  },
  'side-by-side': {
    what: 'ready, memory, latency, throughput and contention, against the official emulators',
    run: sideBySide,
  },
  'under-load': {
    what: 'pipeline for five minutes at the rate of fifo, beside ten busy loops',
    run: underLoad,
  },
  soak: { what: 'resident memory after 20,000 and after 200,000 messages', run: soak },
};

const [name, ...rest] = process.argv.slice(2);
const known = Object.keys(BENCHMARKS).join(', ');
if (name === '--list' && rest.length === 0) {
  for (const [key, { what }] of Object.entries(BENCHMARKS)) console.log(`${key.padEnd(14)} ${what}`);
} else {
  const benchmark = name === undefined ? undefined : BENCHMARKS[name];
  const size = benchmark === undefined ? undefined : sizeOf(benchmark, rest);
  if (benchmark === undefined || size === undefined) {
    const given = JSON.stringify([name, ...rest].join(' '));
    const wrong = name === undefined ? 'no benchmark named' : `no benchmark ${given}`;
    const sized = benchmark?.hasSizes === true ? ', --size N from 0.001 to 1' : '';
    console.error(`error: ${wrong}; accepted: --list, ${known}${sized}`);
    process.exit(2);
  }
  const figures = await benchmark.run((line) => console.log(line), size);
  console.log(JSON.stringify(figures));
}

/** Undefined: what stands behind the name is none. */
function sizeOf({ hasSizes = false }: Benchmark, rest: readonly string[]): number | undefined {
  if (rest.length === 0) return 1;
  const [flag, value = '', ...more] = rest;
  const size = /^(?:0?\.\d{1,3}|1)$/.test(value) ? Number(value) : 0;
  return hasSizes && flag === '--size' && more.length === 0 && size > 0 ? size : undefined;
}
