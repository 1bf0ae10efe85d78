/** Which calls a message makes, counted on the wire behind the client. */
import { randomUUID } from 'node:crypto';
import { DUPLICATES, once } from './burst.ts';
import { countingLog, withClient } from './clients.ts';
import { relayTo } from './relay.ts';
import { claimed, getThenSet, messageOf, type Way } from './ways.ts';

const MESSAGES = 50;

/** By method and status, as in `Commit OK`: of one message, or of all of a burst. */
export type Calls = Readonly<Record<string, number>>;

export async function countCalls(port: number, print: (line: string) => void) {
  const relay = await relayTo(port);
  try {
    return await withClient(relay.port, async (firestore) => {
      const each = async (way: Way): Promise<{ fresh: Calls; duplicate: Calls }> => {
        await way(messageOf(randomUUID()));
        relay.take();
        const ids = Array.from({ length: MESSAGES }, () => randomUUID());
        for (const id of ids) await way(messageOf(id));
        const fresh = perMessage(relay.take());
        for (const id of ids) await way(messageOf(id));
        return { fresh, duplicate: perMessage(relay.take()) };
      };
      const ours = claimed(firestore, countingLog().log);
      const [mine, theirs] = [await each(ours), await each(getThenSet(firestore))];
      const done = Array.from({ length: DUPLICATES }, () => randomUUID());
      for (const id of done) await ours(messageOf(id));
      relay.take();
      await once(ours, done);
      const burst = relay.take();
      print(`calls of a fresh message: ${shown(mine.fresh)}; get-then-set: ${shown(theirs.fresh)}`);
      print(`calls of a duplicate:     ${shown(mine.duplicate)}; get-then-set: ${shown(theirs.duplicate)}`);
      print(`calls of ${DUPLICATES} duplicates of as many ids at once: ${shown(burst)}`);
      return { ...mine, theirs, burst };
    });
  } finally {
    await relay.close();
  }
}

const perMessage = (calls: Calls): Calls =>
  Object.fromEntries(Object.entries(calls).map(([name, count]) => [name, count / MESSAGES]));

const shown = (calls: Calls): string =>
  Object.entries(calls)
    .map(([name, count]) => `${count} × ${name}`)
    .join(', ');
