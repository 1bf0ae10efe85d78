/**
 * The options of a worker, checked and in milliseconds.
 */
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { refused } from '../errors.ts';
import { consoleLog, type Log } from '../log.ts';
import {
  callable,
  checkOptions,
  clock as aClock,
  duration,
  flag,
  isObject,
  log as aLog,
  required,
  objectOf,
  whole,
  type RetryPauses,
  durationFrom,
  RETRY_SHAPE,
  retryPauses,
} from '../options.ts';
import { checkName } from './job.ts';
import type { ClaimLimits } from './job-store.ts';
import { limitsOf, type RoleLimits, roleLimits } from './limits.ts';
import type { JobHandler } from './outcome.ts';
import { type CheckedRecurrence, checkRecurrences, type Recurrence } from './recurrence.ts';
import type { RunSettings } from './run.ts';

export type RoleOptions<Tx = unknown> = Readonly<{
  /** How long a claim holds without a renewal (default 30s, at least 1s); it is renewed after each third of it. */
  lease?: Duration;
  /** How long one run may take (at least `1ms`). After it the run is aborted and counts as failed (`RUN_TOO_LONG`). */
  runTimeout: Duration;
  /** Pauses after failures in a row (default `10s` to `10m`). */
  retry?: RetryPauses;
  /** How many of its jobs run at a time and start in a period, over all workers (default: no limits). */
  limits?: RoleLimits;
  /** One handler for each kind. A job of another kind waits (`HANDLER_MISSING`), without losing an attempt. */
  handle: Readonly<Record<string, JobHandler<Tx>>>;
}>;

export type WorkerOptions = Readonly<{
  /** Jobs at once (default 1, at most 1,000). Nothing is fetched ahead; a crash costs each job in flight an attempt. */
  concurrency?: number;
  /**
   * After `stop` or SIGTERM runs have so long before they are aborted and their jobs released (default `25s`, at least
   * `0ms`).
   */
  closeTimeout?: Duration;
  /** Between two looks for jobs while there are none (default 1s, from 10ms); up to a fifth more or less, by chance. */
  poll?: Duration;
  /** A job goes before one of the next priority that became ready so much later (default 1m). `off`: strictly by priority. */
  ageing?: Duration | 'off';
  /**
   * Jobs that are made at the due times of a cron expression, by name (default: none): one for each due time, whatever workers
   * have them too. Their roles may be worked elsewhere.
   */
  recurring?: Readonly<Record<string, Recurrence>>;
  /** Stops by itself on SIGTERM; a second one ends the wait (default true). */
  drainOnSigterm?: boolean;
  /** Default: the machine's. */
  clock?: Clock;
  /** Default: warnings and errors to standard error. */
  log?: Log;
  /** From 0 to 1 (default: Math.random). */
  random?: () => number;
}>;

export type WorkerSettings<Tx> = Readonly<{
  roles: ReadonlyMap<
    string,
    Omit<RunSettings<Tx>, 'handler'> &
      Pick<RoleOptions<Tx>, 'handle'> &
      Readonly<{ limits: ClaimLimits | undefined }>
  >;
  concurrency: number;
  graceMs: number;
  pollMs: number;
  ageingMs: number;
  recurring: readonly CheckedRecurrence[];
  drainOnSigterm: boolean;
  clock: Clock;
  log: Log;
  random: () => number;
}>;

/** Throws ConfigError `INVALID_OPTION`. */
export function workerSettings<Tx>(
  roles: Readonly<Record<string, RoleOptions<Tx>>>,
  options: WorkerOptions,
): WorkerSettings<Tx> {
  isObject('roles', roles);
  checkOptions<WorkerOptions>(options, {
    concurrency: whole(1, 1_000),
    closeTimeout: duration,
    poll: durationFrom('10ms'),
    ageing: anAgeing,
    recurring: isObject,
    drainOnSigterm: flag,
    clock: aClock,
    log: aLog,
    random: callable,
  });
  const {
    closeTimeout = '25s',
    poll = '1s',
    ageing = '1m',
    concurrency = 1,
    recurring = {},
    drainOnSigterm = true,
  } = options;
  const { clock = systemClock(), log = consoleLog(), random = Math.random } = options;
  const entries = Object.entries(roles);
  if (entries.length === 0) throw refused('roles', roles, 'an object with at least one role');
  return {
    roles: new Map(entries.map(([role, given]) => [role, roleSettings(role, given)])),
    concurrency,
    graceMs: toMilliseconds(closeTimeout, 'closeTimeout'),
    pollMs: toMilliseconds(poll, 'poll'),
    ageingMs: ageing === 'off' ? Infinity : toMilliseconds(ageing, 'ageing'),
    recurring: checkRecurrences('recurring', recurring),
    drainOnSigterm,
    clock,
    log,
    random,
  };
}

function anAgeing(path: string, value: unknown): void {
  if (value !== 'off') duration(path, value);
}

function roleSettings<Tx>(role: string, given: RoleOptions<Tx>) {
  const path = `roles.${role}`;
  try {
    checkName(path, role);
  } catch {
    throw refused('the name of a role', role, 'letters, digits, "_", "-" or "."');
  }
  checkOptions<RoleOptions<Tx>>(
    given,
    {
      lease: durationFrom('1s'),
      runTimeout: required(durationFrom('1ms')),
      retry: objectOf(RETRY_SHAPE),
      limits: roleLimits,
      handle: required(isObject),
    },
    path,
  );
  const { lease = '30s', runTimeout, retry, limits, handle } = given;
  for (const [kind, handler] of Object.entries(handle)) callable(`${path}.handle.${kind}`, handler);
  return {
    leaseMs: toMilliseconds(lease, `${path}.lease`),
    maxRunMs: toMilliseconds(runTimeout, `${path}.runTimeout`),
    backoff: retryPauses(retry, '10s', '10m', path),
    limits: limits && limitsOf(limits),
    handle,
  };
}
