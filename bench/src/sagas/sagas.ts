/**
 * Sagas of four steps on the local stack: how many a second, and how long each takes from its start to its end, with 1, 10
 * and 100 at once; beside the same steps written by hand with inbox and outbox, in turn. And what a step costs in
 * Firestore, counted on the wire. All services and the orchestrator are in this process; the servers are in their own.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { cloudTasksClient, cloudTasksQueue } from 'pubsub-guarantees/tasks/cloud-tasks';
import { connect } from '../in-order/world.ts';
import { beside } from '../later/beside.ts';
import { limits, type Limits } from '../limits.ts';
import { median } from '../median.ts';
import { counted } from '../order-cost/counted.ts';
import { type RunningServers, startEmbedded } from '../servers/start.ts';
import { asSaga } from './as-saga.ts';
import { chained, coordinated } from './by-hand.ts';
import type { Ground, Way } from './services.ts';

type Print = (line: string) => void;

const AT_ONCE = [1, 10, 100] as const;
/** `BENCH_WINDOW_MS` and `BENCH_ROUNDS` make it shorter, to see that it works. */
const WINDOW_MS = Number(process.env['BENCH_WINDOW_MS'] ?? 5_000);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3);
/** Sagas of each length that are counted. */
const COUNTED = 20;
/** Of one step: what Firestore bills beside the step's own read and write. */
const MOST = { reads: 2, writes: 8, deletes: 2 } as const;
const LEAST_RATIO = 0.6;

const QUEUE = 'projects/bench/locations/us-central1/queues/later';

const WAYS = { saga: asSaga, coordinated, chained } as const;
type WayName = keyof typeof WAYS;
const NAMES = ['saga', 'coordinated', 'chained'] as const satisfies readonly WayName[];
const TITLE: Readonly<Record<WayName, string>> = {
  saga: 'saga',
  coordinated: 'by hand, a coordinator with replies',
  chained: 'by hand, a chain without replies',
};

type Pace = Readonly<{ perSecond: number; medianMs: number; p95Ms: number }>;

export async function sagasBench(print: Print): Promise<object> {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const servers = await startEmbedded();
  const tasks = await beside<Readonly<{ tasks: string }>>('../later/serve-tasks.ts');
  const judged = limits(print);
  try {
    return await measured(servers, tasks.ready.tasks, judged, print);
  } finally {
    await tasks.close();
    await servers.close();
  }
}

async function measured(
  servers: RunningServers,
  tasks: string,
  judged: Limits,
  print: Print,
): Promise<object> {
  const client = cloudTasksClient({ projectId: 'bench', emulatorHost: tasks });
  const { pubsub, firestore, close } = connect(servers);
  try {
    await client.createQueue({ parent: QUEUE.replace(/\/queues\/.*/, ''), queue: { name: QUEUE } });
    await pubsub.createTopic('dead-letters');
    const queue = cloudTasksQueue(client, { queue: QUEUE, target: { appEngine: {} } });
    const ground: Ground = { firestore, pubsub, publisher: pubsubPublisher(pubsub), queue };
    const step = await costOfAStep(servers.firestorePort, ground, judged, print);
    const speed = await speeds(ground, judged, print);
    return { step, ...speed, missed: judged.missed() };
  } finally {
    await close();
    await client.close();
  }
}

/** The difference between rows of six steps and of two: neither a start, nor an end, nor a timer is part of it. */
async function costOfAStep(port: number, ground: Ground, judged: Limits, print: Print) {
  const OWN = { reads: 1, writes: 1, deletes: 0 };
  const step = await counted(port, async ({ firestore, take }) => {
    const ofRow = async (length: number) => {
      const row = Array.from({ length }, (_, index) => `s${index}`);
      const way = await asSaga({ ...ground, firestore }, `row-${length}`, row);
      await take();
      for (let count = 0; count < COUNTED; count += 1) await way.run(randomUUID());
      // The last participant may still be at the removal of its row.
      await pause(1_000);
      const { operations } = await take();
      await way.close();
      return operations;
    };
    const [two, six] = [await ofRow(2), await ofRow(6)];
    const each = (kind: keyof typeof OWN): number => (six[kind] - two[kind]) / 4 / COUNTED - OWN[kind];
    return { reads: each('reads'), writes: each('writes'), deletes: each('deletes') };
  });
  print('operations of Firestore for one step, beside its own read and write:');
  for (const kind of ['reads', 'writes', 'deletes'] as const) judged.atMost(kind, step[kind], MOST[kind]);
  return step;
}

async function speeds(ground: Ground, judged: Limits, print: Print) {
  const ways = new Map<WayName, Way>();
  for (const name of NAMES) ways.set(name, await WAYS[name](ground, name));
  const found: Record<string, object> = {};
  try {
    for (const atOnce of AT_ONCE) {
      const paces = new Map<WayName, Pace[]>(NAMES.map((name) => [name, []]));
      // The first round warms up and is not counted.
      for (let round = 0; round <= ROUNDS; round += 1) {
        for (const [name, way] of ways) {
          const pace = await paced(way, atOnce);
          if (round > 0) paces.get(name)?.push(pace);
        }
      }
      found[`atOnce${atOnce}`] = compared(atOnce, paces, judged, print);
    }
    return found;
  } finally {
    for (const way of ways.values()) await way.close();
  }
}

/** So many actions at once, each followed by the next, for the window; those under way at its end are waited for. */
async function paced(way: Way, atOnce: number): Promise<Pace> {
  const times: number[] = [];
  const begun = performance.now();
  const lane = async (): Promise<void> => {
    while (performance.now() - begun < WINDOW_MS) {
      const from = performance.now();
      await way.run(randomUUID());
      times.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  const sorted = times.toSorted((left, right) => left - right);
  return {
    perSecond: rounded((times.length / (performance.now() - begun)) * 1_000),
    medianMs: rounded(median(sorted)),
    p95Ms: rounded(sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN),
  };
}

function compared(
  atOnce: number,
  paces: ReadonlyMap<WayName, readonly Pace[]>,
  judged: Limits,
  print: Print,
): object {
  print('');
  print(`${atOnce} at once, ${ROUNDS} rounds of ${WINDOW_MS / 1_000} s:`);
  const medians = new Map<WayName, Pace>();
  for (const [name, rounds] of paces) {
    const of = (key: keyof Pace): number => median(rounds.map((round) => round[key]));
    const pace = { perSecond: of('perSecond'), medianMs: of('medianMs'), p95Ms: of('p95Ms') };
    medians.set(name, pace);
    const [rate, middle, late] = [pace.perSecond, pace.medianMs, pace.p95Ms].map((value) => value.toFixed(1));
    print(
      `  ${TITLE[name].padEnd(40)}${rate?.padStart(8)} a second   ${middle} ms, 95 of 100 below ${late} ms`,
    );
  }
  const ratioTo = (name: WayName): number =>
    rounded((medians.get('saga')?.perSecond ?? 0) / (medians.get(name)?.perSecond ?? Number.NaN));
  const ratios = { coordinated: ratioTo('coordinated'), chained: ratioTo('chained') };
  judged.atLeast(`${atOnce} at once: sagas to the coordinator by hand`, ratios.coordinated, LEAST_RATIO);
  print(`       to the chain by hand, which has half the messages: ${ratios.chained.toFixed(2)}`);
  return { ...Object.fromEntries(medians), ratios };
}

const rounded = (value: number): number => Number(value.toFixed(2));
