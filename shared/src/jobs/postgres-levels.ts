/**
 * The levels of a claim: each role with each priority, and below which time a claim need not look.
 *
 * Index entries of rows that are gone stand in front of the first live one for as long as any snapshot can see them, and
 * each claim passes over them. So where a claim was slow, the next ones begin at the time of the last job that was found,
 * less a margin; once in 2 s one looks at everything, for what was committed late behind that.
 */
import type { Clock } from '../clock.ts';
import { type ClaimedJob, PRIORITIES } from './job.ts';
import type { ClaimQuery } from './job-store.ts';

/** `since` in seconds since the epoch; null: from the first. */
type Level = Readonly<{ role: string; priority: number; since: number | null; lease_ms: number }>;

export type Levels = Readonly<{
  /** What the next claim asks for, and whether it looks at everything. */
  next(query: ClaimQuery): Readonly<{ levels: readonly Level[]; isWhole: boolean }>;
  /** What a claim has found, and how long it took. */
  found(jobs: readonly ClaimedJob[], tookMs: number, isWhole: boolean): void;
}>;

const SLOW_MS = 25;
const MARGIN_MS = 10_000;
const WHOLE_EVERY_MS = 2_000;

export function claimLevels(clock: Clock): Levels {
  const lastMs = new Map<string, number>();
  let isSlow = false;
  let wholeAtMs = -Infinity;

  return {
    next({ roles }) {
      const isWhole = !isSlow || clock.monotonic() >= wholeAtMs;
      if (isWhole) wholeAtMs = clock.monotonic() + WHOLE_EVERY_MS;
      const since = (role: string, priority: number): number | null => {
        const last = isWhole ? undefined : lastMs.get(`${role} ${priority}`);
        return last === undefined ? null : (last - MARGIN_MS) / 1_000;
      };
      const levels = roles.flatMap(({ role, leaseMs }) =>
        PRIORITIES.map((priority) => ({
          role,
          priority,
          since: since(role, priority),
          lease_ms: leaseMs,
        })),
      );
      return { levels, isWhole };
    },
    found(jobs, tookMs, isWhole) {
      if (tookMs > SLOW_MS) isSlow = true;
      // A bounded claim is fast because it is bounded, which says nothing of the others.
      else if (isWhole) isSlow = false;
      for (const { role, priority, readyMs } of jobs) lastMs.set(`${role} ${priority}`, readyMs);
    },
  };
}
