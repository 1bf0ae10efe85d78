/**
 * What a claim of the job store in memory takes, and what of it counts against limits afterwards.
 */
import type { choose, JobRecord } from './decide.ts';
import type { ClaimQuery } from './job-store.ts';
import type { chooseWithin, Usage } from './limits.ts';
import { drop, type JobTable, type Start } from './memory-table.ts';

type Rules = Readonly<{ choose: typeof choose; chooseWithin: typeof chooseWithin }>;

/** Of a limit of starts. */
const LONGEST_PERIOD_MS = 86_400_000;

/** In one turn of the event loop with the claim. */
export function chosen(
  rules: Rules,
  table: JobTable,
  query: ClaimQuery,
  nowMs: number,
): readonly JobRecord[] {
  const limits = new Map(query.roles.map((role) => [role.role, role.limits]));
  if ([...limits.values()].every((one) => one === undefined)) return rules.choose(table.jobs.values(), query);
  const taken = rules.chooseWithin(table.jobs.values(), query, usageOf(table, nowMs));
  for (const { role, limitKey } of taken) {
    const { starts, startsPerKey } = limits.get(role) ?? {};
    if ((starts ?? startsPerKey) !== undefined) table.starts.push({ role, limitKey, atMs: nowMs });
  }
  drop(table.starts, ({ atMs }) => atMs <= nowMs - LONGEST_PERIOD_MS);
  return taken;
}

/** What counts against limits now. */
const usageOf = (table: JobTable, nowMs: number): Usage => ({
  running: (role, key) => {
    const counts = (one: JobRecord): boolean =>
      one.state === 'running' && one.role === role && (key === undefined || one.limitKey === key);
    return [...table.jobs.values()].filter(counts).length;
  },
  started: (periodMs, role, key) => {
    const counts = (one: Start): boolean =>
      one.atMs > nowMs - periodMs && one.role === role && (key === undefined || one.limitKey === key);
    return table.starts.filter(counts).length;
  },
});
