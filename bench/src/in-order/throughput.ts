/** Messages a second and deliveries a message of the three ways, in turn on the same servers. */
import { median } from '../median.ts';
import { consume, type Consumed, type ConsumeOptions } from './consume.ts';
import type { Limits } from '../limits.ts';
import { pushed } from './receiving.ts';
import { inTurn, shuffled } from './stream.ts';
import { article, native, ours, type Way } from './ways.ts';
import type { World } from './world.ts';

type Print = (line: string) => void;

export type Sizes = Readonly<{
  rounds: number;
  /** Shuffled, ours alone, the first of them beside the article's algorithm too. */
  shuffled: readonly number[];
  /** The article's algorithm is ended after so long, and counts as far as it got. */
  articleMs: number;
  /** In order, ours and ordering keys. */
  inOrder: number;
  /** For a handler that writes a document. */
  inOrderWriting: number;
}>;

const WINDOW = 50;
const WARM_UP = 200;
const WRITES = 20;
const [MOST_DELIVERIES, TIMES_THE_ARTICLE, OF_NATIVE, FAILS_EVERY] = [1.05, 20, 0.5, 100];

export async function throughput(
  name: string,
  world: World,
  sizes: Sizes,
  limits: Limits,
  print: Print,
): Promise<object> {
  await consume(world, ours, shuffled(WARM_UP, WINDOW));
  await consume(world, native, inTurn(WARM_UP));
  const writeMs = await writeTime(world);
  const show = (what: string, way: Way, { perSecond, deliveriesPerMessage, handled }: Consumed): void => {
    const rate = `${perSecond.toFixed(perSecond < 20 ? 1 : 0)}/s`;
    print(
      `${name}  ${what.padEnd(46)}${way.name.padEnd(9)}${rate.padStart(8)}  ${deliveriesPerMessage.toFixed(2).padStart(6)} deliveries each of ${handled}`,
    );
  };
  const beside: Record<string, object> = {};
  const found: Record<string, object> = { beside };
  const mixed: object[] = [];
  for (const [index, count] of sizes.shuffled.entries()) {
    const order = shuffled(count, WINDOW);
    const rounds: Consumed[] = [];
    for (let round = 0; round < (index === 0 ? sizes.rounds : 1); round += 1) {
      rounds.push(await consume(world, ours, order));
    }
    const mine = medianOf(rounds);
    show(`${count} shuffled`, ours, mine);
    limits.atMost(`${name}: deliveries each, ${count} shuffled`, mine.deliveriesPerMessage, MOST_DELIVERIES);
    mixed.push({ count, ...mine });
    if (index > 0) continue;
    const theirs = await consume(world, article, order, { limitMs: sizes.articleMs });
    show(`${count} shuffled`, article, theirs);
    const times = mine.perSecond / theirs.perSecond;
    limits.atLeast(`${name}: times the article's speed, ${count} shuffled`, times, TIMES_THE_ARTICLE);
    beside['article'] = { count, ...theirs, times };
  }
  found['shuffled'] = mixed;
  const writing = (world: World): ConsumeOptions => {
    const effects = world.firestore.collection('bench-effects');
    return { work: async (number) => void (await effects.doc(`effect-${number}`).set({ number })) };
  };
  const [byPush, fails] = [{ receiving: pushed }, { failEvery: FAILS_EVERY }];
  for (const [what, count, options] of [
    ['in order, push', sizes.inOrder, byPush],
    ['in order, push, 1 of 100 fails', sizes.inOrder, { ...byPush, ...fails }],
    ['in order, pull', sizes.inOrder, {}],
    ['in order, pull, 1 of 100 fails', sizes.inOrder, fails],
    ['in order, pull, writes', sizes.inOrderWriting, writing(world)],
    ['in order, pull, writes, 1 of 100 fails', sizes.inOrderWriting, { ...writing(world), ...fails }],
  ] as const) {
    const [mine, theirs]: [Consumed[], Consumed[]] = [[], []];
    for (let round = 0; round < sizes.rounds; round += 1) {
      mine.push(await consume(world, ours, inTurn(count), options));
      theirs.push(await consume(world, native, inTurn(count), options));
    }
    show(`${count} ${what}`, ours, medianOf(mine));
    show(`${count} ${what}`, native, medianOf(theirs));
    const ratio = median(mine.map((one, index) => one.perSecond / (theirs[index]?.perSecond ?? Number.NaN)));
    limits.atLeast(`${name}: of ordering keys' throughput, ${what}`, ratio, OF_NATIVE);
    const most = [1, 2].map((writes) => mostOfNative(medianOf(mine), medianOf(theirs), writes * writeMs));
    if (ratio < OF_NATIVE) {
      const [once, twice] = most.map((share) => share.toFixed(2));
      print(
        `       at most ${once} for a way that stores before it acknowledges (${writeMs.toFixed(1)} ms), and ${twice} if before it starts, too`,
      );
    }
    found[what] = { count, ours: medianOf(mine), native: medianOf(theirs), ratio, most };
  }
  return found;
}

/** What one write of a document takes, one after the other. */
async function writeTime({ firestore }: World): Promise<number> {
  const document = firestore.collection('bench-effects').doc('write-time');
  const times: number[] = [];
  for (let write = 0; write < WRITES; write += 1) {
    const begun = performance.now();
    await document.set({ write });
    times.push(performance.now() - begun);
  }
  return median(times);
}

/**
 * By Little's law: messages a second are those outstanding over the time from one's delivery to that of the next in its
 * place. A way that acknowledges only what a commit shows as done has each for that time and `writeMs`, at the least; twice that
 * with a commit of its identity before it is started.
 */
export function mostOfNative(
  { outstanding }: Pick<Consumed, 'outstanding'>,
  native: Pick<Consumed, 'outstanding' | 'perSecond'>,
  writeMs: number,
): number {
  const nativeMs = (native.outstanding / native.perSecond) * 1_000;
  return ((outstanding / (nativeMs + writeMs)) * 1_000) / native.perSecond;
}

function medianOf(rounds: readonly Consumed[]): Consumed {
  const of = (key: keyof Consumed): number => median(rounds.map((one) => one[key]));
  return {
    elapsedMs: of('elapsedMs'),
    perSecond: of('perSecond'),
    deliveriesPerMessage: Math.max(...rounds.map((one) => one.deliveriesPerMessage)),
    outstanding: Math.max(...rounds.map((one) => one.outstanding)),
    handled: of('handled'),
  };
}
