/**
 * In order: messages of one key through in-order delivery beside the article's algorithm and beside native ordering keys, how
 * long what waited for a missing number goes on waiting, and how a stopped consumer catches up. On the local stack, on
 * the same with a store that takes 15 ms more for each call, and on Google's emulators where they are installed.
 */
import { officialEmulators } from '../servers/java.ts';
import { type RunningServers, startEmbedded, startOfficial } from '../servers/start.ts';
import { catchUp } from './catch-up.ts';
import { closings } from './gap.ts';
import { type Limits, limits } from '../limits.ts';
import { type Sizes, throughput } from './throughput.ts';
import { connect, type World } from './world.ts';

type Print = (line: string) => void;

const STORE_DELAY_MS = 15;
const PLAIN: Sizes = {
  rounds: 3,
  shuffled: [100, 1_000, 10_000],
  articleMs: 40_000,
  inOrder: 2_000,
  inOrderWriting: 500,
  judgedBy: 'native',
};
const DELAYED: Sizes = {
  ...PLAIN,
  shuffled: [100, 1_000],
  articleMs: 20_000,
  inOrder: 1_000,
  inOrderWriting: 100,
  judgedBy: 'bound',
};
const OFFICIAL: Sizes = {
  ...PLAIN,
  shuffled: [100, 1_000],
  articleMs: 20_000,
  inOrder: 1_000,
  inOrderWriting: 200,
  judgedBy: 'bound',
};
/** How many wait, and how often. */
const GAPS = [
  [10, 20],
  [100, 10],
  [1_000, 5],
  [10_000, 2],
] as const;
const HELD = [10_000, 100_000] as const;
const [STEADY_GAP, STEADY_CATCH_UP, MOST_MB] = [2, 1.5, 300];

export async function inOrderBench(print: Print): Promise<object> {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const official = officialEmulators(print);
  const judged = limits(print);
  const found: Record<string, object> = {};
  await on(startEmbedded(), async (world, servers) => {
    found['embedded'] = await throughput('local', world, PLAIN, judged, print);
    found['gaps'] = await gaps(world, GAPS, judged, print);
    found['catchUp'] = await caughtUp(servers, HELD, judged, print);
  });
  await on(startEmbedded({ storeDelayMs: STORE_DELAY_MS }), async (world) => {
    found['delayed'] = await throughput(`+${STORE_DELAY_MS} ms`, world, DELAYED, judged, print);
  });
  if (official !== undefined) {
    await on(startOfficial(official), async (world) => {
      found['official'] = await throughput('java ', world, OFFICIAL, judged, print);
    });
  }
  if (judged.missed().length > 0) process.exitCode = 1;
  return { ...found, missed: judged.missed() };
}

export async function gaps(
  world: World,
  sizes: readonly (readonly [number, number])[],
  judged: Limits,
  print: Print,
): Promise<object> {
  const all = [];
  for (const [waiting, rounds] of sizes) {
    const one = await closings(world, waiting, rounds);
    print(
      `${String(waiting).padStart(6)} waited for a missing number: the last began after ${one.p50.toFixed(0)} ms (p50), ${one.p99.toFixed(0)} ms (p99 of ${rounds} rounds), ${one.perMessageMs.toFixed(2)} ms each`,
    );
    all.push(one);
  }
  const [before, largest] = all.slice(-2);
  if (before !== undefined && largest !== undefined) {
    const what = `time each with ${largest.waiting} waiting, of that with ${before.waiting}`;
    judged.atMost(what, largest.perMessageMs / before.perMessageMs, STEADY_GAP);
  }
  return all;
}

async function caughtUp(
  servers: RunningServers,
  sizes: readonly [number, number],
  judged: Limits,
  print: Print,
): Promise<object> {
  const [few, many] = [await catchUp(servers, sizes[0]), await catchUp(servers, sizes[1])];
  for (const { held, elapsedMs, perMessageMs, peakMb } of [few, many]) {
    print(
      `${String(held).padStart(6)} held: caught up in ${(elapsedMs / 1_000).toFixed(1)} s, ${perMessageMs.toFixed(2)} ms each, at most ${peakMb} MB resident`,
    );
  }
  const ratio = many.perMessageMs / few.perMessageMs;
  judged.atMost(`time each with ${many.held} held, of that with ${few.held}`, ratio, STEADY_CATCH_UP);
  judged.atMost(`MB resident with ${many.held} held`, many.peakMb, MOST_MB);
  return { few, many, ratio };
}

async function on(
  starting: Promise<RunningServers>,
  use: (world: World, servers: RunningServers) => Promise<void>,
): Promise<void> {
  const servers = await starting;
  const world = connect(servers);
  try {
    await use(world, servers);
  } finally {
    await world.close();
    await servers.close();
  }
}
