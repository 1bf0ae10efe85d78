/**
 * Numbers of one hot key: the sequencer beside one transaction for each number, with publishers in several processes; and
 * the outbox, with the callers' own transactions and without. On the local stack's Firestore, on the same one where each
 * call takes 15 ms more, and on Google's emulator where that is installed. Every run checks that the numbers
 * are 1 to n, none twice.
 */
import type { Limits } from '../limits.ts';
import { median } from '../median.ts';
import { onFirestores } from '../servers/firestores.ts';
import { type Published, publishing } from './publishing.ts';
import type { WayName } from './ways.ts';

type Print = (line: string) => void;

export type Sizes = Readonly<{
  rounds: number;
  windowMs: number;
  processes: number;
  publishers: number;
  /** Callers at once with transactions of their own, in one process. */
  callers: readonly number[];
}>;

const DELAYED: Sizes = { rounds: 3, windowMs: 3_000, processes: 4, publishers: 50, callers: [1, 4, 16] };
const PLAIN: Sizes = { ...DELAYED, rounds: 1, windowMs: 2_000 };
// Transactions that meet there wait for a lock until they time out: shorter, and it would say nothing.
const OFFICIAL: Sizes = { ...DELAYED, rounds: 1, windowMs: 10_000, callers: [1, 4] };
const TIMES_PLAIN = 10;

export const sequencerBench = (print: Print): Promise<object> =>
  onFirestores(
    { embedded: PLAIN, delayed: DELAYED, official: OFFICIAL },
    (title, port, sizes, judged) => numbersAt(title, port, sizes, judged, print),
    print,
  );

export async function numbersAt(
  title: string,
  port: number,
  { rounds, windowMs, processes, publishers, callers }: Sizes,
  judged: Limits,
  print: Print,
): Promise<object> {
  print('');
  print(`${title}; numbers of one key a second, ${windowMs / 1_000} s each:`);
  const ours: Published[] = [];
  const plain: Published[] = [];
  const all = { port, processes, publishers, windowMs };
  for (let round = 1; round <= rounds; round += 1) {
    ours.push(await publishing({ ...all, way: 'sequencer' }));
    plain.push(await publishing({ ...all, way: 'plain' }));
  }
  const manner = `${processes} × ${publishers} publishers`;
  for (const one of ours) print(shown(`sequencer, ${manner}`, one));
  for (const one of plain) print(shown(`a transaction each, ${manner}`, one));
  const ratio = perSecond(ours) / perSecond(plain);
  judged.atLeast(`${title}: the sequencer to a transaction each`, ratio, TIMES_PLAIN);
  const failed = ours.reduce((sum, one) => sum + one.failed + one.unanswered, 0);
  judged.atMost(`${title}: publishes that failed with the sequencer`, failed, 0);
  const outbox: Record<string, Published> = {};
  const stated = async (name: string, way: WayName, count: number, each: number): Promise<void> => {
    const one = await publishing({ port, windowMs, way, processes: count, publishers: each });
    outbox[name] = one;
    print(shown(name, one));
  };
  await stated(`outbox without a transaction, ${manner}`, 'sender', processes, publishers);
  for (const count of callers) {
    await stated(`outbox in a caller's transaction, ${count} at once`, 'reserve', 1, count);
  }
  return { ours, plain, ratio: Number(ratio.toFixed(2)), outbox };
}

const perSecond = (rounds: readonly Published[]): number => median(rounds.map((one) => one.perSecond));

function shown(name: string, one: Published): string {
  const open = one.unanswered === 0 ? '' : `, ${one.unanswered} unanswered`;
  const failures = one.failed === 0 ? '' : ` (${one.failure?.slice(0, 60)})`;
  return `  ${name.padEnd(46)}${one.perSecond.toFixed(0).padStart(6)}   ${one.failed} failed${open}${failures}`;
}
