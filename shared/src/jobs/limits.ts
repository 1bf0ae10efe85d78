/**
 * Limits of a role: how many of its jobs run at a time and how many start in a period, of all of them and of those with one
 * `limitKey`, over all workers. A claim takes no more than the limits leave room for, and counts what every claim before it
 * has taken: claims of such a role are made one after the other.
 *
 * A job counts as running until its end is stored: one whose process died until its lease is judged. A claim counts as a
 * start, also where the job is given back before its handler begins.
 */
import { type Duration, toMilliseconds } from '../duration.ts';
import { refused } from '../errors.ts';
import { type Check, checkOptions, durationFrom, required, objectOf, whole } from '../options.ts';
import { type JobRecord, rankOf } from './decide.ts';
import type { ClaimLimits, ClaimQuery } from './job-store.ts';

type Rate = Readonly<{
  /** A whole number from 1 to 100,000. */
  most: number;
  /** From `1s` to `24h`. In no time of this length, wherever it begins, are there more starts. */
  per: Duration;
}>;

/**
 * The same in each worker of the role: a worker without limits asks for none.
 *
 * @example
 * worker(jobStore, {
 *   export: {
 *     runTimeout: '10m',
 *     limits: { running: 20, runningPerKey: 1, starts: { most: 100, per: '1m' } },
 *     handle: { pdf: async () => ack() },
 *   },
 * });
 */
export type RoleLimits = Readonly<{
  /** Jobs of the role that run at a time (default: no limit; from 1 to 100,000). */
  running?: number;
  /** Jobs with one `limitKey` that run at a time (default: no limit; from 1 to 100,000). */
  runningPerKey?: number;
  /** Jobs of the role that start in a period (default: no limit). */
  starts?: Rate;
  /** Jobs with one `limitKey` that start in a period (default: no limit). */
  startsPerKey?: Rate;
}>;

const MOST = 100_000;
const rate = objectOf<Rate>({ most: required(whole(1, MOST)), per: required(durationFrom('1s', '24h')) });

/** Throws ConfigError `INVALID_OPTION`. */
export const roleLimits: Check = (path, given) => {
  checkOptions<RoleLimits>(
    given,
    { running: whole(1, MOST), runningPerKey: whole(1, MOST), starts: rate, startsPerKey: rate },
    path,
  );
  if (Object.values(given as RoleLimits).some((limit) => limit !== undefined)) return;
  throw refused(path, given, 'at least one of running, runningPerKey, starts and startsPerKey');
};

/** In milliseconds, of checked ones. */
export function limitsOf({ running, runningPerKey, starts, startsPerKey }: RoleLimits): ClaimLimits {
  const inMs = ({ most, per }: Rate) => ({ most, perMs: toMilliseconds(per) });
  return {
    ...(running !== undefined && { running }),
    ...(runningPerKey !== undefined && { runningPerKey }),
    ...(starts !== undefined && { starts: inMs(starts) }),
    ...(startsPerKey !== undefined && { startsPerKey: inMs(startsPerKey) }),
  };
}

/** What counts against the limits: of a role, or of one of its keys. */
export type Usage = Readonly<{
  running(role: string, key?: string): number;
  started(periodMs: number, role: string, key?: string): number;
}>;

/**
 * What a claim takes: of the jobs that are ready, by levels as elsewhere, with each key of a limited role as a level of its
 * own, so that no job waits behind those of a key that has no room.
 */
export function chooseWithin(
  records: Iterable<JobRecord>,
  { roles, limit, suspect, ageingMs }: ClaimQuery,
  usage: Usage,
): readonly JobRecord[] {
  const limits = new Map(roles.map((role) => [role.role, role.limits ?? {}]));
  const rooms = new Map<string, number>();
  const roomOf = (role: string, key?: string): number => {
    const name = JSON.stringify([role, key]);
    const found = rooms.get(name) ?? room(limits.get(role) ?? {}, usage, role, key);
    rooms.set(name, found);
    return found;
  };
  const hasRoom = ({ role, limitKey }: JobRecord): boolean =>
    roomOf(role) > 0 && (limitKey === undefined || roomOf(role, limitKey) > 0);

  const ready = [...records].filter((one) => one.state === 'ready' && limits.has(one.role) && hasRoom(one));
  const rank = (one: JobRecord | undefined): number => (one === undefined ? Infinity : rankOf(one, ageingMs));
  const levels = Map.groupBy(
    ready.filter(({ crashes }) => crashes === 0),
    ({ role, priority, limitKey }) => JSON.stringify([role, priority, limitKey]),
  );
  const others = [...levels.values()]
    .map((level) => level.toSorted((one, other) => one.runAtMs - other.runAtMs || one.id - other.id))
    .toSorted(([one], [other]) => rank(one) - rank(other))
    .flat();
  const suspects = ready.filter(({ crashes }) => crashes > 0);
  const [first] = suspect ? suspects.toSorted((one, other) => rank(one) - rank(other)) : [];
  const isDue = rank(first) <= rank(others[0]);
  const offered = first === undefined ? others : isDue ? [first, ...others] : [...others, first];

  const taken: JobRecord[] = [];
  for (const one of offered) {
    if (taken.length >= limit || !hasRoom(one)) continue;
    taken.push(one);
    rooms.set(JSON.stringify([one.role, undefined]), roomOf(one.role) - 1);
    if (one.limitKey === undefined) continue;
    rooms.set(JSON.stringify([one.role, one.limitKey]), roomOf(one.role, one.limitKey) - 1);
  }
  return taken;
}

function room(limits: ClaimLimits, usage: Usage, role: string, key: string | undefined): number {
  const isRole = key === undefined;
  const running = isRole ? limits.running : limits.runningPerKey;
  const starts = isRole ? limits.starts : limits.startsPerKey;
  return Math.min(
    running === undefined ? Infinity : running - usage.running(role, key),
    starts === undefined ? Infinity : starts.most - usage.started(starts.perMs, role, key),
  );
}
