/**
 * The job store in this process's memory: for tests, and for handlers that are tried out. It keeps to what the port
 * promises, on the clock that it is given. Nothing survives the process.
 *
 * Transactions are as READ COMMITTED has them: what is written is visible after the commit, the last commit wins, and a
 * key that another transaction is writing is waited for.
 */
import { type Clock, systemClock } from '../clock.ts';
import { anything, callable, checkOptions, clock as aClock } from '../options.ts';
import { freshRows, type MemoryRow, type Network } from '../outbox/memory-table.ts';
import type { Row } from '../outbox/rows.ts';
import { cancel, choose, claim, type JobRecord, promote, renew, rescue, settle } from './decide.ts';
import type { ClaimedJob, Job } from './job.ts';
import { chooseWithin } from './limits.ts';
import { type HeldJob, type JobStore, MOST_COUNTED, type Settled, type Settlement } from './job-store.ts';
import {
  apply,
  drop,
  expireKey,
  type JobTable,
  LOG_RETENTION_MS,
  memoryJobTable,
  revive,
  SAMPLE_EVERY_MS,
  SAMPLE_RETENTION_MS,
  vitalsOf,
} from './memory-table.ts';
import { chosen } from './memory-claims.ts';
import { memoryRecurrences } from './memory-recurrences.ts';
import { type MemoryJobTransaction, memoryWrites, prepared, type Staged } from './memory-writes.ts';
import { mayDecide } from './recurrence.ts';

export type { MemoryJobTransaction } from './memory-writes.ts';

export type MemoryJobs = JobStore<MemoryJobTransaction> &
  Readonly<{
    /** A transaction of the caller's: what `work` writes and enqueues is committed together, or not at all if it throws. */
    transact<Result>(work: (tx: MemoryJobTransaction) => Promise<Result>): Promise<Result>;
    /** What is committed of the caller's own values. */
    peek(id: string): unknown;
    /** Messages of completed jobs, as rows of the outbox. */
    rows(): readonly MemoryRow[];
  }>;

export type MemoryJobsOptions = Readonly<{
  /** The store's clock (default: the system's). */
  clock?: Clock;
  /** Every request passes through it: where a test loses, delays or repeats one (default: nothing goes wrong). */
  network?: Network;
  /** Shared by the stores of several processes (default: a new one). */
  table?: JobTable;
  /** When the store started, milliseconds since the epoch (default: long ago): a minute after it leases are judged. */
  startedMs?: () => number;
}>;

/** What the store decides by: replaced one at a time where a test wants to see that a rule is needed. */
export type StoreRules = Readonly<{
  choose: typeof choose;
  chooseWithin: typeof chooseWithin;
  claim: typeof claim;
  renew: typeof renew;
  settle: typeof settle;
  rescue: typeof rescue;
  promote: typeof promote;
  cancel: typeof cancel;
  mayDecide: typeof mayDecide;
}>;

export const STORE_RULES: StoreRules = {
  choose,
  chooseWithin,
  claim,
  renew,
  settle,
  rescue,
  promote,
  cancel,
  mayDecide,
};

/** What could not be renewed while the store was away has not crashed. */
const AFTER_START_MS = 60_000;

/**
 * Throws ConfigError for an option that is not valid.
 *
 * @example
 * const store = memoryJobs({ clock });
 * await store.transact((tx) => jobs(store).enqueue(tx, [{ role: 'ingest', kind: 'scene', payload: { scene: 42 } }]));
 */
export function memoryJobs(options: MemoryJobsOptions = {}): MemoryJobs {
  return memoryJobsBy(STORE_RULES, options);
}

export function memoryJobsBy(rules: StoreRules, options: MemoryJobsOptions = {}): MemoryJobs {
  checkOptions<MemoryJobsOptions>(options, {
    clock: aClock,
    network: callable,
    table: anything,
    startedMs: callable,
  });
  const { clock = systemClock(), network = (_request, send) => send() } = options;
  const { table = memoryJobTable(), startedMs = () => -Infinity } = options;
  const { open, close, stagedIn, commit, write } = memoryWrites(table, clock, network);

  const settled = ({ held, ending }: Settlement): Settled => {
    const nowMs = clock.now();
    const record = table.jobs.get(Number(held.id));
    const change = record && rules.settle(record, held, ending, nowMs);
    return change === undefined ? before(held) : { kind: 'settled', state: apply(table, change, nowMs) };
  };
  /** What the log, or the job itself, says of a run that has the job no more. */
  const before = ({ id, token }: HeldJob): Settled => {
    const logged = table.log.find((row) => String(row.id) === id && String(row.token) === token);
    if (logged !== undefined) return { kind: 'already', state: logged.state };
    const record = table.jobs.get(Number(id));
    const isMine =
      record?.owner !== undefined && String(record.token) === token && record.state !== 'running';
    return isMine ? { kind: 'already', state: record.state } : { kind: 'stolen' };
  };

  const complete = (held: HeldJob, staged: Staged, rows: readonly Row[]): Settled => {
    const nowMs = clock.now();
    const record = table.jobs.get(Number(held.id));
    const change = record && rules.settle(record, held, { kind: 'done' }, nowMs);
    if (change === undefined) return before(held);
    commit(staged);
    const state = apply(table, change, nowMs);
    for (const fresh of freshRows(rows, nowMs, undefined)) table.outbox.put(`row/${fresh.row.id}`, fresh);
    return { kind: 'settled', state };
  };

  const claimedJob = (record: JobRecord): ClaimedJob => ({
    ...jobOf(record),
    token: String(record.token),
    claimedMs: record.claimedMs,
  });

  const transact: MemoryJobs['transact'] = async (work) => {
    const tx = open();
    try {
      const result = await work(tx);
      const staged = stagedIn(tx);
      await network('commit', async () => commit(staged));
      return result;
    } finally {
      close(tx);
    }
  };

  return {
    ...memoryRecurrences(rules, table, clock, network),
    write,
    exchange: (owner, call, { renew: renewals, settle: settlements, claim: query }) =>
      network('exchange', async () => {
        const nowMs = clock.now();
        const taken = query === undefined ? [] : chosen(rules, table, query, nowMs);
        const renewed = renewals.map(({ leaseMs, ...held }) => {
          const record = table.jobs.get(Number(held.id));
          const next = record && rules.renew(record, held, leaseMs, nowMs);
          if (next === undefined) return { kind: 'lost' } as const;
          table.jobs.set(next.id, next);
          return { kind: 'renewed', cancelAsked: next.cancelAsked } as const;
        });
        const answers = settlements.map(settled);
        const leases = new Map(query?.roles.map(({ role, leaseMs }) => [role, leaseMs]));
        const claimed = taken.map((record) => {
          const next = rules.claim(record, { owner, call, leaseMs: leases.get(record.role) ?? 0 }, nowMs);
          table.jobs.set(next.id, next);
          return claimedJob(next);
        });
        return { renewed, settled: answers, claimed };
      }),
    adopt: (owner, call) =>
      network('adopt', async () => {
        const isMine = (one: JobRecord): boolean =>
          one.state === 'running' && one.owner === owner && one.call === call;
        return [...table.jobs.values()].filter(isMine).map(claimedJob);
      }),
    begin: (held) =>
      network('begin', async () => {
        const tx = open();
        return {
          tx,
          async commit(completion) {
            try {
              const ready = await prepared({ write }, tx, held, completion, clock.now());
              if (ready.kind === 'refused') return ready;
              const staged = stagedIn(tx);
              return await network('commit', async () => complete(held, staged, ready.rows));
            } finally {
              close(tx);
            }
          },
          rollback: async () => close(tx),
        };
      }),
    rescue: (limit) =>
      network('rescue', async () => {
        const counts = { promoted: 0, rescued: 0, dead: 0, cancelled: 0 };
        const nowMs = clock.now();
        const mayRescue = nowMs >= startedMs() + AFTER_START_MS;
        let left = limit;
        for (const record of table.jobs.values()) {
          if (left === 0) break;
          const promoted = rules.promote(record, nowMs);
          const change = mayRescue ? rules.rescue(record, nowMs) : undefined;
          if (promoted === undefined && change === undefined) continue;
          left -= 1;
          if (promoted !== undefined) table.jobs.set(promoted.id, promoted);
          if (promoted !== undefined) counts.promoted += 1;
          if (change === undefined) continue;
          const state = apply(table, change, nowMs);
          counts[state === 'dead' ? 'dead' : state === 'cancelled' ? 'cancelled' : 'rescued'] += 1;
        }
        return { ...counts, more: left === 0 };
      }),
    cancel: (id) =>
      network('cancel', async () => {
        const record = table.jobs.get(Number(id));
        if (record === undefined) return 'tooLate';
        const change = rules.cancel(record);
        apply(table, change, clock.now());
        return change.kind === 'ended' ? 'cancelled' : 'requested';
      }),
    dead: ({ role, limit, after }) =>
      network('dead', async () => {
        const all = [...table.dead.values()]
          .filter(({ record }) => role === undefined || record.role === role)
          .filter(({ record }) => after === undefined || record.id < Number(after))
          .toSorted((one, other) => other.record.id - one.record.id);
        const items = all.slice(0, limit).map(({ record, reason, diedMs }) => ({
          ...jobOf(record),
          reason,
          diedMs,
        }));
        const last = items.at(-1);
        return { items, ...(all.length > limit && last !== undefined && { next: last.id }) };
      }),
    relaunch: (ids) =>
      network('relaunch', async () => ids.filter((id) => revive(table, Number(id), clock.now())).length),
    discard: (ids) =>
      network('discard', async () => {
        const found = [...new Set(ids)].flatMap((id) => table.dead.get(Number(id)) ?? []);
        for (const { record } of found) {
          table.dead.delete(record.id);
          expireKey(table, record, clock.now());
        }
        return found.length;
      }),
    look: (role) =>
      network('look', async () => {
        const isMine = (one: JobRecord): boolean => role === undefined || one.role === role;
        const mine = [...table.jobs.values()].filter(isMine);
        const counted = (is: (one: JobRecord) => boolean): number =>
          Math.min(MOST_COUNTED, mine.filter(is).length);
        const dead = [...table.dead.values()].filter(({ record }) => isMine(record)).length;
        return {
          ready: counted(({ state }) => state === 'ready'),
          waiting: counted(({ state }) => state === 'waiting'),
          running: counted(({ state }) => state === 'running'),
          suspects: counted(({ state, crashes }) => state === 'ready' && crashes > 0),
          dead: Math.min(MOST_COUNTED, dead),
        };
      }),
    vitals: (windowMs) => network('vitals', async () => vitalsOf(table, clock.now(), windowMs)),
    tidy: () =>
      network('tidy', async () => {
        const nowMs = clock.now();
        const expired = [...table.keys].filter(([, { expiresMs = Infinity }]) => expiresMs <= nowMs);
        for (const [key] of expired) table.keys.delete(key);
        const logged = drop(table.log, ({ finishedMs }) => finishedMs <= nowMs - LOG_RETENTION_MS);
        drop(table.samples, ({ atMs }) => atMs <= nowMs - SAMPLE_RETENTION_MS);
        if (nowMs - (table.samples.at(-1)?.atMs ?? -Infinity) >= SAMPLE_EVERY_MS) {
          const { backlog } = vitalsOf(table, nowMs, SAMPLE_EVERY_MS);
          table.samples.push({ atMs: nowMs, backlog });
        }
        return { keys: expired.length, logged };
      }),
    wake: (role) =>
      network('wake', async () => {
        for (const listener of table.listeners) listener(role);
      }),
    listen(woken, signal) {
      table.listeners.add(woken);
      return new Promise((resolve) => {
        const end = (): void => {
          table.listeners.delete(woken);
          resolve();
        };
        if (signal.aborted) end();
        else signal.addEventListener('abort', end, { once: true });
      });
    },
    submit: (jobs) => transact((tx) => write(tx, jobs)),
    transact,
    peek: (id) => table.values.get(id),
    rows: () => table.outbox.rows(),
  };
}

const jobOf = (record: JobRecord): Job => ({
  id: String(record.id),
  role: record.role,
  kind: record.kind,
  payload: record.payload,
  priority: record.priority,
  attempt: record.attempts,
  maxAttempts: record.maxAttempts,
  crashes: record.crashes,
  createdMs: record.createdMs,
  readyMs: record.runAtMs,
});
