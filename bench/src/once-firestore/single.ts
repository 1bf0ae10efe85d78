/** One message at a time, both ways in turn: what a delivery costs when nothing else goes on. */
import { randomUUID } from 'node:crypto';
import { median } from '../median.ts';
import { messageOf, type Way } from './ways.ts';

/** Medians, in milliseconds. */
export type Single = Readonly<{ beforeMs: number; wholeMs: number; duplicateMs: number }>;
export type Pair = Readonly<{ ours: Single; theirs: Single }>;

/** Each of the messages is delivered twice in either way; the way that goes first alternates. */
export async function inTurn(ours: Way, theirs: Way, messages: number): Promise<Pair> {
  const [mine, other] = [measured(ours), measured(theirs)];
  for (let index = 0; index < messages; index += 1) {
    const id = randomUUID();
    for (const { once } of index % 2 === 0 ? [mine, other] : [other, mine]) await once(id);
  }
  return { ours: mine.medians(), theirs: other.medians() };
}

function measured(way: Way): Readonly<{ once(id: string): Promise<void>; medians(): Single }> {
  const times = { before: [] as number[], whole: [] as number[], duplicate: [] as number[] };
  return {
    async once(id) {
      const { beforeMs, wholeMs } = await way(messageOf(id));
      if (beforeMs === undefined) throw new Error(`the handler of ${id} did not run`);
      times.before.push(beforeMs);
      times.whole.push(wholeMs);
      const again = await way(messageOf(id));
      if (!again.isDuplicate || again.beforeMs !== undefined) throw new Error(`${id} ran twice`);
      times.duplicate.push(again.wholeMs);
    },
    medians: () => ({
      beforeMs: median(times.before),
      wholeMs: median(times.whole),
      duplicateMs: median(times.duplicate),
    }),
  };
}
