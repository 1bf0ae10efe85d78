/**
 * The local stack's servers beside the official emulators, in turn on one machine: time to ready, memory, latency,
 * throughput, and a contended counter. Less is better in every ratio.
 */
import { median } from '../median.ts';
import { officialEmulators } from '../servers/java.ts';
import { type RunningServers, startEmbedded, startOfficial } from '../servers/start.ts';
import { type Figures, measure } from './measure.ts';

const ROUNDS = 3;

export async function sideBySide(print: (line: string) => void): Promise<object> {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const official = officialEmulators(print);
  const embedded: Figures[] = [];
  const java: Figures[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    embedded.push(await on(startEmbedded()));
    print(`round ${round}: embedded ${JSON.stringify(embedded.at(-1))}`);
    if (official === undefined) continue;
    java.push(await on(startOfficial(official)));
    print(`round ${round}: official ${JSON.stringify(java.at(-1))}`);
  }
  const ours = medians(embedded);
  if (official === undefined) return { embedded: ours };
  const theirs = medians(java);
  const rows = [
    ['ms until every server answers', ours.readyMs, theirs.readyMs],
    ['MB resident, idle (3 servers against 2)', ours.idleMb, theirs.idleMb],
    ['ms from publish to handler, p50', ours.latencyP50Ms, theirs.latencyP50Ms],
    ['ms for 5,000 messages published and received', ours.bulkMs, theirs.bulkMs],
    [
      'ms an increment of a contended counter',
      ours.counterMs / ours.counted,
      theirs.counterMs / theirs.counted,
    ],
  ] as const;
  print('');
  print(
    `${'median of 3'.padEnd(46)}${'embedded'.padStart(10)}${'official'.padStart(10)}${'ratio'.padStart(8)}`,
  );
  for (const [what, a, b] of rows) {
    print(`${what.padEnd(46)}${shown(a)}${shown(b)}${(a / b).toFixed(2).padStart(8)}`);
  }
  const [ready, memory, latency, bulk, counter] = rows.map(([, a, b]) => Number((a / b).toFixed(3)));
  return { embedded: ours, official: theirs, ratios: { ready, memory, latency, bulk, counter } };
}

const shown = (value: number): string => value.toFixed(value < 100 ? 1 : 0).padStart(10);

async function on(starting: Promise<RunningServers>): Promise<Figures> {
  const servers = await starting;
  try {
    return await measure(servers);
  } finally {
    await servers.close();
  }
}

function medians(figures: readonly Figures[]): Figures {
  const of = (key: keyof Figures): number => median(figures.map((one) => one[key]));
  return {
    readyMs: of('readyMs'),
    idleMb: of('idleMb'),
    latencyP50Ms: of('latencyP50Ms'),
    bulkMs: of('bulkMs'),
    counterMs: of('counterMs'),
    counted: of('counted'),
  };
}
