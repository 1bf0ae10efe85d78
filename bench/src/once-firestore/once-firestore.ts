/**
 * Once over Firestore: the calls of a message counted on the wire; the time of one message against the get-then-set
 * transaction; and hundreds of duplicates at once. On the local stack's Firestore, on the same one behind a network that
 * takes 5 ms for each call, and on Google's emulator where that is installed.
 */
import { startOfficialFirestore } from 'pubsub-guarantees-emulator/official';
import { median } from '../median.ts';
import { officialEmulators } from '../servers/java.ts';
import { startEmbedded } from '../servers/start.ts';
import { type Burst, burst, DUPLICATES } from './burst.ts';
import { countCalls } from './calls.ts';
import { countingLog, withClient } from './clients.ts';
import { relayTo } from './relay.ts';
import { inTurn, type Pair, type Single } from './single.ts';
import { claimed, getThenSet } from './ways.ts';

const ROUNDS = 5;
const MESSAGES = 100;
const WARM_UP = 100;
const NETWORK_MS = 5;
/** Duplicates of as many ids, ten of each of thirty, and of one. */
const BURST_IDS = [DUPLICATES, 30, 1] as const;

type Print = (line: string) => void;

export async function onceFirestore(print: Print): Promise<object> {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const official = officialEmulators(print);
  const ours = await startEmbedded();
  const found: Record<string, object> = {};
  try {
    found['calls'] = await countCalls(ours.firestorePort, print);
    found['embedded'] = await timed('embedded', ours.firestorePort, print);
    const relay = await relayTo(ours.firestorePort, NETWORK_MS);
    found['network'] = await timed(`embedded, ${NETWORK_MS} ms a call`, relay.port, print);
    await relay.close();
  } finally {
    await ours.close();
  }
  if (official === undefined) return found;
  const java = await startOfficialFirestore({ found: official });
  try {
    found['official'] = await timed('official emulator', java.port, print);
  } finally {
    await java.close();
  }
  return found;
}

async function timed(name: string, port: number, print: Print): Promise<object> {
  return withClient(port, async (firestore) => {
    const { log, lines } = countingLog();
    const [ours, theirs] = [claimed(firestore, log), getThenSet(firestore)];
    await inTurn(ours, theirs, WARM_UP);
    const rounds: Pair[] = [];
    for (let round = 1; round <= ROUNDS; round += 1) rounds.push(await inTurn(ours, theirs, MESSAGES));
    print('');
    print(`${name}, ${ROUNDS} rounds of ${MESSAGES}`.padEnd(38) + HEADINGS);
    const before = compared('ms before the handler', rounds, 'beforeMs', print);
    const whole = compared('ms of a whole message', rounds, 'wholeMs', print);
    const duplicate = compared('ms of a duplicate', rounds, 'duplicateMs', print);
    const bursts: Burst[] = [];
    for (const ids of BURST_IDS) {
      const one = await burst(ours, ids, lines);
      bursts.push(one);
      const times = `median ${one.medianMs} ms, fastest ${one.fastestMs}, first ${one.firstMs}`;
      print(`${DUPLICATES} duplicates of ${ids} ids at once: ${times}`);
    }
    return { before, whole, duplicate, bursts };
  });
}

const HEADINGS = 'once'.padStart(8) + 'get-set'.padStart(9) + 'ratio'.padStart(7) + '   ratios of the rounds';

/** Ratios of medians: less is better for us. */
function compared(what: string, rounds: readonly Pair[], key: keyof Single, print: Print): object {
  const ours = median(rounds.map((pair) => pair.ours[key]));
  const theirs = median(rounds.map((pair) => pair.theirs[key]));
  const each = rounds.map((pair) => pair.ours[key] / pair.theirs[key]).toSorted((a, b) => a - b);
  const [least, most] = [each.at(0) ?? Number.NaN, each.at(-1) ?? Number.NaN];
  const shown =
    ours.toFixed(2).padStart(8) + theirs.toFixed(2).padStart(9) + (ours / theirs).toFixed(2).padStart(7);
  print(`${what.padEnd(38)}${shown}   ${least.toFixed(2)} to ${most.toFixed(2)}`);
  return { ours: rounded(ours), theirs: rounded(theirs), ratio: rounded(ours / theirs) };
}

const rounded = (value: number): number => Number(value.toFixed(3));
