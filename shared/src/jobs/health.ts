/**
 * Whether the queue keeps up, judged by what the database says of the last hour and not by what a process remembers.
 */
import { type Duration, toMilliseconds } from '../duration.ts';
import { checkOptions, duration, durationFrom, whole } from '../options.ts';

/** The oldest snapshot of the server, which keeps dead rows from being removed. */
export type Snapshot = Readonly<{
  ageMs: number;
  /** A connection's process ID, or the name of a replication slot or a prepared transaction. */
  holder: string;
}>;

export type Vitals = Readonly<{
  /** Ready and due jobs now; at most 10,001 are counted. */
  backlog: number;
  /** The mean of the samples in the window, one a minute; undefined while there is none. */
  meanBacklog: number | undefined;
  /** The part of the window that the samples cover, in milliseconds. */
  coveredMs: number;
  /** 95 % of the runs in the window began within so long after their job was ready; undefined where none did. */
  pickUpP95Ms: number | undefined;
  dead: number;
  /** Undefined where the store has no such thing. */
  snapshot: Snapshot | undefined;
  /** What the account may not see, so that a missing figure is not taken for a good one. */
  unseen: readonly string[];
}>;

export type HealthOptions = Readonly<{
  /** The mean number of waiting jobs above which the queue is behind (default 100, from 0). */
  backlog?: number;
  /** Over how long the mean is taken (default `1h`, `1m` to `24h`: samples are kept for a day). */
  backlogFor?: Duration;
  /** Above which the 95th percentile of the time until a job is picked up is named (default `5s`, from `0ms`). */
  pickUpP95?: Duration;
  /** How old a snapshot may be before it is named (default `5m`, from `0ms`). */
  snapshotAge?: Duration;
}>;

export type HealthProblem = Readonly<{
  code: 'BACKLOG' | 'PICK_UP' | 'OLD_SNAPSHOT';
  text: string;
}>;

export type Health = Readonly<{ ok: boolean; problems: readonly HealthProblem[]; vitals: Vitals }>;

export type Thresholds = Readonly<{
  backlog: number;
  backlogForMs: number;
  pickUpP95Ms: number;
  snapshotAgeMs: number;
}>;

/** Throws ConfigError. The defaults are those of a task queue in a city platform's production: 100 for an hour, 5 s. */
export function thresholdsOf(options: HealthOptions): Thresholds {
  checkOptions<HealthOptions>(options, {
    backlog: whole(0),
    backlogFor: durationFrom('1m', '24h'),
    pickUpP95: duration,
    snapshotAge: duration,
  });
  const { backlog = 100, backlogFor = '1h', pickUpP95 = '5s', snapshotAge = '5m' } = options;
  const backlogForMs = toMilliseconds(backlogFor, 'backlogFor');
  return {
    backlog,
    backlogForMs,
    pickUpP95Ms: toMilliseconds(pickUpP95, 'pickUpP95'),
    snapshotAgeMs: toMilliseconds(snapshotAge, 'snapshotAge'),
  };
}

/** A mean says nothing until its samples cover half of the window. */
export function judge(vitals: Vitals, thresholds: Thresholds): Health {
  const problems: HealthProblem[] = [];
  const { meanBacklog, coveredMs, pickUpP95Ms, snapshot } = vitals;
  const isCovered = coveredMs >= thresholds.backlogForMs / 2;
  if (meanBacklog !== undefined && isCovered && meanBacklog > thresholds.backlog) {
    const text = `${Math.round(meanBacklog)} jobs waited on average; accepted: ${thresholds.backlog}`;
    problems.push({ code: 'BACKLOG', text });
  }
  if (pickUpP95Ms !== undefined && pickUpP95Ms > thresholds.pickUpP95Ms) {
    const text = `5 % of the runs began later than ${pickUpP95Ms} ms after their job was ready; accepted: ${thresholds.pickUpP95Ms} ms`;
    problems.push({ code: 'PICK_UP', text });
  }
  if (snapshot !== undefined && snapshot.ageMs > thresholds.snapshotAgeMs) {
    const age = Math.round(snapshot.ageMs / 1_000);
    const text = `${snapshot.holder} holds a snapshot that is ${age} s old: dead rows stay, and claims become slower`;
    problems.push({ code: 'OLD_SNAPSHOT', text });
  }
  return { ok: problems.length === 0, problems, vitals };
}
