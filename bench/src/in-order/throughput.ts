/** Messages a second and deliveries a message of the three ways, in turn on the same servers. */
import { median } from '../median.ts';
import { consume, type Consumed, type ConsumeOptions, OutOfOrder } from './consume.ts';
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
  /**
   * Against ordering keys themselves, or, where a call of the store takes long, against the most that any way can reach
   * which writes before it acts and before it acknowledges (`mostOfNative`).
   */
  judgedBy: 'native' | 'bound';
}>;

const WINDOW = 50;
const WARM_UP = 200;
const WRITES = 20;
/** The start of a number, and what it came to. */
const WRITES_BEFORE_ACK = 2;
const [MOST_DELIVERIES, TIMES_THE_ARTICLE, OF_BOUND, FAILS_EVERY] = [1.05, 20, 0.8, 100];

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
  for (const [what, count, atLeast, options] of [
    ['in order, push', sizes.inOrder, 0.9, byPush],
    ['in order, push, 1 of 100 fails', sizes.inOrder, 0.5, { ...byPush, ...fails }],
    ['in order, pull', sizes.inOrder, 0.65, {}],
    ['in order, pull, 1 of 100 fails', sizes.inOrder, 0.65, fails],
    ['in order, pull, writes', sizes.inOrderWriting, 0.95, writing(world)],
    ['in order, pull, writes, 1 of 100 fails', sizes.inOrderWriting, 0.95, { ...writing(world), ...fails }],
  ] as const) {
    const [mine, theirs]: [Consumed[], Consumed[]] = [[], []];
    for (let round = 0; round < sizes.rounds; round += 1) {
      mine.push(await consume(world, ours, inTurn(count), options));
      const theirRound = await unlessOutOfOrder(consume(world, native, inTurn(count), options), print);
      if (theirRound !== undefined) theirs.push(theirRound);
    }
    show(`${count} ${what}`, ours, medianOf(mine));
    if (theirs.length < sizes.rounds) continue;
    show(`${count} ${what}`, native, medianOf(theirs));
    const ratio = median(mine.map((one, index) => one.perSecond / (theirs[index]?.perSecond ?? Number.NaN)));
    const most = mostOfNative(medianOf(mine), medianOf(theirs), WRITES_BEFORE_ACK * writeMs);
    if (sizes.judgedBy === 'native') {
      limits.atLeast(`${name}: of ordering keys' throughput, ${what}`, ratio, atLeast);
    } else {
      print(
        `       of ordering keys' throughput ${ratio.toFixed(2)}, at most ${most.toFixed(2)} with ${WRITES_BEFORE_ACK} writes of ${writeMs.toFixed(1)} ms before an acknowledgement`,
      );
      limits.atLeast(`${name}: of what is possible with such writes, ${what}`, ratio / most, OF_BOUND);
    }
    found[what] = { count, ours: medianOf(mine), native: medianOf(theirs), ratio, most };
  }
  return found;
}

/** Google's emulator for Pub/Sub sometimes breaks its own promise after a nack: then there is nothing to compare with. */
async function unlessOutOfOrder(consuming: Promise<Consumed>, print: Print): Promise<Consumed | undefined> {
  try {
    return await consuming;
  } catch (error) {
    if (!(error instanceof OutOfOrder)) throw error;
    print(`       no comparison: ordering keys did not keep the order (${error.message})`);
    return undefined;
  }
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
