/**
 * A process with publishers of one key: each publishes again as soon as it has its number, until the time is over. Says
 * when it is ready, begins when its parent says so, and ends with its parent.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { withClient } from '../once-firestore/clients.ts';
import { WAYS, type WayName } from './ways.ts';

export type Reported = Readonly<{
  numbers: readonly number[];
  /** How many of them were answered before the time was over. */
  inTime: number;
  failed: number;
  /** Of the failures, one. */
  failure?: string;
  /** Not answered some seconds after the end: what becomes of them is not known. */
  unanswered: number;
}>;

/** For those that are in flight at the end. */
const GRACE_MS = 5_000;

process.once('disconnect', () => process.exit(0));
const [way = '', port, key = '', lanes, windowMs] = process.argv.slice(2);

await withClient(Number(port), async (firestore) => {
  const publish = WAYS[way as WayName](firestore);
  await publish(`warm-up-${randomUUID()}`);
  const begin = new Promise<void>((resolve) => process.once('message', () => resolve()));
  process.send?.('ready');
  await begin;
  const end = performance.now() + Number(windowMs);
  const numbers: number[] = [];
  let [inTime, failed, unanswered] = [0, 0, 0];
  let failure: string | undefined;
  const lane = async (): Promise<void> => {
    while (performance.now() < end) {
      unanswered += 1;
      try {
        numbers.push(await publish(key));
        if (performance.now() < end) inTime += 1;
      } catch (error) {
        failed += 1;
        failure = String(error);
      }
      unanswered -= 1;
    }
  };
  const all = Promise.all(Array.from({ length: Number(lanes) }, lane));
  await Promise.race([all, wait(Number(windowMs) + GRACE_MS)]);
  const reported: Reported = {
    numbers,
    inTime,
    failed,
    unanswered,
    ...(failure !== undefined && { failure }),
  };
  await new Promise((resolve) => process.send?.(reported, resolve));
  // What is still in flight ends with the process, and its server sees the connection close.
  process.exit(0);
});
