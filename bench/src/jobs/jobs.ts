/**
 * Jobs in Postgres: throughput beside graphile-worker, a rare role behind many ready jobs, claims under an old snapshot,
 * and renewals. Ratios, both sides in one run, each the median of five rounds.
 */
import { limits } from '../limits.ts';
import { openGround, type Print } from './ground.ts';
import { oldSnapshot } from './old-snapshot.ts';
import { rareRole } from './rare-role.ts';
import { renewals } from './renewals.ts';
import { throughput } from './throughput.ts';

const JOBS = 20_000;
const READY_ROWS = 1_000_000;
const DEAD_ROWS = 100_000;
const RENEWALS = 100;

/** `size`: 1 is the whole, and what the limits are for. */
export async function jobsBench(print: Print, size: number): Promise<object> {
  const of = (whole: number): number => Math.max(1, Math.round(whole * size));
  const ground = await openGround(print);
  if (ground === undefined) return { skipped: 'postgres' };
  try {
    print(`Postgres ${ground.version}, commits to disk, 20 connections${size === 1 ? '' : `; size ${size}`}`);
    const { atLeast, atMost, missed } = limits(print);
    print(`${of(JOBS)} trivial jobs:`);
    const speed = await throughput(ground, print, of(JOBS));
    atLeast('10 handlers ÷ graphile-worker as it is by default with 10', speed.byDefault.ratio, 2);
    atLeast('200 in hand ÷ graphile-worker with 100 and a local queue of 200', speed.inHand.ratio, 1);
    print(`       200 in hand ÷ the same with completions in batches: ${speed.inHandOverBatches.ratio}`);
    print(`one job of a rare role behind ${of(READY_ROWS)} of another:`);
    const rare = await rareRole(ground, print, of(READY_ROWS));
    atLeast('a claim with role = any ÷ a claim by levels', rare.order.ratio, 30);
    print(`       the same where the index has the role too: ${rare.orderAndRole.ratio}`);
    print(`${of(DEAD_ROWS)} jobs worked under a held snapshot:`);
    const snapshot = await oldSnapshot(ground, print, of(DEAD_ROWS));
    atMost('a claim behind dead rows ÷ one without', snapshot.ratio, 2);
    print('renewals:');
    const renewed = await renewals(ground, print, Math.max(10, of(RENEWALS)));
    atLeast('renewals that are HOT, in percent', renewed.percent, 90);
    return { postgres: ground.version, size, speed, rare, snapshot, renewed, missed: missed() };
  } finally {
    await ground.close();
  }
}
