/**
 * What in-order delivery costs in Firestore: operations per message as they are billed, counted on the wire behind
 * Google's client; how they grow with a stream's length; many keys at once beside one. On the local stack's Firestore, on
 * the same one where each call takes 15 ms more, and on Google's emulator where that is installed.
 *
 * `once` in front of it would cost two writes more. Messages come straight from an array: no delivery is lost or doubled.
 */
import type { Limits } from '../limits.ts';
import { onFirestores } from '../servers/firestores.ts';
import { type Case, type Cost, cost, HEADINGS, shown } from './cases.ts';
import { type Counted, counted } from './counted.ts';
import { type Keys, manyKeys } from './keys.ts';

type Print = (line: string) => void;

type Lengths = Readonly<{ messages: readonly number[]; window: number; outstanding: number }>;

/** `lengths`: of one stream, to see whether a message costs more in a longer one. */
export type Sizes = Readonly<{
  warmUp: Case;
  cases: readonly (Case & Readonly<{ most: number }>)[];
  lengths?: readonly Lengths[];
  keys: Keys;
}>;

const WINDOW = 50;
const warmUp: Case = { name: '', messages: 200, window: WINDOW, outstanding: 20 };

const casesOf = (trickle: number, one: number, four: number, twenty: number): Sizes['cases'] => [
  { name: 'in turn, 1 outstanding', messages: trickle, window: 0, outstanding: 1, most: 2.1 },
  { name: 'shuffled over 50, 1 outstanding', messages: one, window: WINDOW, outstanding: 1, most: 3 },
  { name: 'shuffled over 50, 4 outstanding', messages: four, window: WINDOW, outstanding: 4, most: 2.1 },
  { name: 'shuffled over 50, 20 outstanding', messages: twenty, window: WINDOW, outstanding: 20, most: 1.5 },
  { name: 'shuffled over 10, 20 outstanding', messages: twenty, window: 10, outstanding: 20, most: 0.4 },
  { name: 'in turn, 20 outstanding', messages: twenty, window: 0, outstanding: 20, most: 0.15 },
];
const PLAIN: Sizes = {
  warmUp,
  cases: casesOf(200, 500, 500, 1_000),
  lengths: [
    { messages: [1_000, 10_000, 100_000], window: 0, outstanding: 50 },
    { messages: [1_000, 10_000, 100_000], window: WINDOW, outstanding: 20 },
  ],
  keys: { keys: 200, messages: 20, window: WINDOW, outstanding: 4 },
};
const DELAYED: Sizes = { warmUp, cases: casesOf(50, 200, 300, 1_000), keys: PLAIN.keys };
// Each of its transactions that meets another one waits for a lock for seconds.
const OFFICIAL: Sizes = {
  warmUp,
  cases: casesOf(100, 200, 300, 500),
  keys: { ...PLAIN.keys, keys: 20 },
};

const [FLAT, LIKE_ONE, LONGEST_WAIT] = [1.1, 1.2, 3];

export const orderCost = (print: Print): Promise<object> =>
  onFirestores(
    { embedded: PLAIN, delayed: DELAYED, official: OFFICIAL },
    (title, port, sizes, judged) => costsAt(title, port, sizes, judged, print),
    print,
  );

export function costsAt(
  title: string,
  port: number,
  { warmUp: first, cases, lengths = [], keys }: Sizes,
  judged: Limits,
  print: Print,
): Promise<object> {
  return counted(port, async (server) => {
    await cost(server, first);
    print('');
    print(`${title}:`);
    print(HEADINGS);
    const costs: Record<string, Cost> = {};
    for (const one of cases) {
      const figures = await cost(server, one);
      costs[one.name] = figures;
      print(shown(one.name, one.messages, figures));
      judged.atMost(`${title}: ${one.name}`, figures.operations, one.most);
    }
    return {
      ...costs,
      lengths: await longer(title, server, lengths, judged, print),
      keys: await besideOne(title, server, keys, judged, print),
    };
  });
}

async function longer(
  title: string,
  server: Counted,
  all: readonly Lengths[],
  judged: Limits,
  print: Print,
): Promise<readonly Cost[]> {
  const found: Cost[] = [];
  for (const { messages, window, outstanding } of all) {
    const name = `${window === 0 ? 'in turn' : `shuffled over ${window}`}, ${outstanding} outstanding`;
    const operations: number[] = [];
    for (const count of messages) {
      const figures = await cost(server, { name, messages: count, window, outstanding });
      print(shown(name, count, figures));
      found.push(figures);
      operations.push(figures.operations);
    }
    const what = `${title}: ${name}, a message among ${messages.join(' and ')}, the dearest to the cheapest`;
    judged.atMost(what, Math.max(...operations) / Math.min(...operations), FLAT);
  }
  return found;
}

async function besideOne(
  title: string,
  server: Counted,
  keys: Keys,
  judged: Limits,
  print: Print,
): Promise<object> {
  const figures = await manyKeys(server, keys);
  const { one, many, medianMs, slowestMs } = figures;
  const manner = `${keys.outstanding} outstanding each`;
  print(shown(`one key alone, ${manner}`, keys.messages, one));
  print(shown(`${keys.keys} keys, ${manner}`, keys.keys * keys.messages, many));
  print(
    `a key's last message: after ${medianMs.toFixed(0)} ms (median), ${slowestMs.toFixed(0)} ms (slowest)`,
  );
  const what = `${title}: ${keys.keys} keys to one,`;
  judged.atMost(`${what} operations`, many.operations / one.operations, LIKE_ONE);
  judged.atLeast(`${what} throughput`, many.perSecond / one.perSecond, 1);
  judged.atMost(`${what} the slowest key to the median`, slowestMs / medianMs, LONGEST_WAIT);
  return figures;
}
