/**
 * When a run is over: everything that can come has come and nothing more comes for a while, or the time is up.
 * Pure; the run looks here a few times a second.
 */
import { missingOf } from './missing.ts';
import type { Observed } from './observed.ts';
import { traceAll } from './trace.ts';

/** Nothing new for this long. */
export const SETTLE_MS = 2_000;
/**
 * After the functions serve again: the stack's leases (5 s) and one redelivery have passed by then, so a repeat that
 * the crash made has shown itself.
 */
export const AFTER_CRASH_MS = 8_000;
/** After the last due time, and after the functions serve again: what has not come by then is called lost, on a busy machine too. */
export const PATIENCE_MS = 120_000;

export type Moment = Readonly<{
  /** All on one clock, milliseconds. */
  nowMs: number;
  publishingDone: boolean;
  /** Of the last publish, arrival or dead letter. */
  lastSeenMs: number;
  /** Absent while the functions are killed or not killed yet. */
  servingSinceMs?: number;
  /** Of everything that was published. */
  lastDueMs: number;
}>;

export type Waiting = Readonly<{ over: boolean; missing: number }>;

export function waitingFor(observed: Observed, moment: Moment): Waiting {
  const open = missingOf(traceAll(observed).traces);
  const missing = open.filter(({ hopeless }) => !hopeless).length;
  const { nowMs, publishingDone, lastSeenMs, servingSinceMs, lastDueMs } = moment;
  const isSettled =
    publishingDone &&
    servingSinceMs !== undefined &&
    nowMs - servingSinceMs >= AFTER_CRASH_MS &&
    nowMs - lastSeenMs >= SETTLE_MS &&
    nowMs >= lastDueMs + SETTLE_MS;
  const isTimeUp =
    publishingDone &&
    servingSinceMs !== undefined &&
    nowMs >= Math.max(lastDueMs, servingSinceMs) + PATIENCE_MS;
  return { over: (isSettled && missing === 0) || isTimeUp, missing };
}

/** How long after its publish a message is due; 0 for what asks for nothing or for something invalid. */
export function askedDelayMs(attributes: Readonly<Record<string, string>>, nowMs: number): number {
  const { delay, deliverAt } = attributes;
  const asked = delay === undefined ? Date.parse(deliverAt ?? '') - nowMs : Number(delay) * 1_000;
  return asked > 0 && asked <= Number.MAX_SAFE_INTEGER ? asked : 0;
}
