/**
 * Plays one schedule against a way of working jobs, on virtual time, and says which invariants it broke.
 *
 * Three processes share one store. Each enqueues and works; it is paused, or dies at any request or by a job, and is
 * replaced. The store may be away and start again. After a while nothing fails any more: by then every job must have ended.
 */
import { type Clock, sleep } from '../../../shared/src/clock.ts';
import { storeUnavailable, TransientError } from '../../../shared/src/errors.ts';
import { silent } from '../../../shared/src/log.ts';
import { ack } from '../../../shared/src/outcome.ts';
import type { JobRecord } from '../../../shared/src/jobs/decide.ts';
import type { Job, NewJob } from '../../../shared/src/jobs/job.ts';
import {
  memoryJobsBy,
  type MemoryJobTransaction,
  STORE_RULES,
  type StoreRules,
} from '../../../shared/src/jobs/memory.ts';
import { memoryJobTable } from '../../../shared/src/jobs/memory-table.ts';
import { complete, type JobContext, type JobOutcome } from '../../../shared/src/jobs/outcome.ts';
import { WORKER_RULES, workerBy, type WorkerRules } from '../../../shared/src/jobs/worker.ts';
import { workerSettings } from '../../../shared/src/jobs/worker-options.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import { supervise } from '../engine/supervisor.ts';
import { inTurn } from '../engine/faults.ts';
import { plannedDeaths } from '../engine/places.ts';
import { type Process, startProcess } from '../engine/process.ts';
import { type Invariant, type SeenRun, type Violation, violations } from './invariants.ts';
import {
  type Kind,
  KINDS,
  type PlannedJob,
  type Request,
  type Schedule,
  type Site,
  FAULTS_END_MS,
} from './schedule.ts';

/** What a mutant changes. */
export type Way = Readonly<{
  store?: Partial<StoreRules>;
  worker?: Partial<WorkerRules>;
  /** The store's own clock, as a process would judge by its wrong one. */
  storeClock?: (right: Clock, wrong: Clock) => Clock;
  /** How often a lease is renewed: never. */
  renews?: false;
  /** A start of the store does not keep leases from being judged. */
  judgesAtOnce?: true;
  /** The store forgets the claims of its last seconds when it goes away. */
  forgets?: true;
}>;

export const asBuilt: Way = {};

const SEATS = 3;
const LEASE_MS = 30_000;
const MAX_RUN_MS = 150_000;
/** Longer than all attempts of all jobs, one after the other. */
const LIMIT_MS = FAULTS_END_MS + 36_000_000;
/** How long before the end of a lease a fault may begin that ends it. */
const CAUSE_MS = 3 * LEASE_MS;
const FORGOTTEN_MS = 20_000;
/** Of so many calls in a row so many may lose their reply, and no lease ends by that. */
const RECENT = 20;
const MOST_LOST = 6;
const RETRY_MS = 10_000;
/** Of one job, once nothing fails any more: twenty attempts and a few. */
const MOST_STARTS = 25;

type Payload = Readonly<{ workMs: number; number: number }>;

export async function play(
  way: Way,
  schedule: Schedule,
  died: (site: Site) => void = () => {},
): Promise<readonly Violation[]> {
  const clock = virtualClock();
  const table = memoryJobTable();
  const quietMs = clock.now() + FAULTS_END_MS + 60_000;
  const hasFaults = (): boolean => clock.monotonic() < FAULTS_END_MS;
  const due = plannedDeaths(schedule.deaths, died);
  const nextFault = inTurn(schedule.faults);
  const runs: SeenRun[] = [];
  const seen: Violation[] = [];
  const confirmed: Readonly<{ id: string; key: number | undefined }>[] = [];
  const say = (invariant: Invariant, text: string): void => void seen.push({ invariant, text });
  /** By owner: when something happened to the process that may cost it a lease. */
  const disturbances = new Map<string, number[]>();
  const dead = new Set<string>();
  /** Until when a pause may still be the cause of a lost lease. */
  const pausedUntil = new Map<string, number>();
  const failedAt = new Map<string, number>();
  const cancelledMs = new Map<string, number>();
  const hits = new Map<string, number>();
  const claimedFrom = new Map<number, JobRecord>();
  const isDown = (): boolean => {
    const { outage } = schedule;
    const now = clock.monotonic();
    return outage !== undefined && now >= outage.at && now < outage.at + outage.milliseconds;
  };
  const startedMs = (): number => {
    const { outage } = schedule;
    if (outage === undefined || way.judgesAtOnce) return -Infinity;
    const endMs = outage.at + outage.milliseconds;
    return clock.monotonic() >= endMs ? clock.now() - clock.monotonic() + endMs : -Infinity;
  };

  const rules: StoreRules = { ...STORE_RULES, ...way.store };
  /** What the rules decide, looked at while they do. */
  const watched: StoreRules = {
    ...rules,
    claim(record, request, nowMs) {
      claimedFrom.set(record.id, record);
      return rules.claim(record, request, nowMs);
    },
    settle(record, held, ending, nowMs) {
      const change = rules.settle(record, held, ending, nowMs);
      if (change?.kind === 'kept' && ending.kind === 'failed')
        failedAt.set(held.id, clock.now() + ending.delayMs);
      return change;
    },
    cancel(record) {
      cancelledMs.set(String(record.id), clock.now());
      return rules.cancel(record);
    },
    rescue(record, nowMs) {
      const change = rules.rescue(record, nowMs);
      if (change !== undefined) checkCause(record);
      return change;
    },
  };
  const checkCause = ({ id, owner = '', call = 0, claimedMs }: JobRecord): void => {
    const now = clock.monotonic();
    const sinceMs = Math.max(claimedMs - (clock.now() - now) - CAUSE_MS, now - CAUSE_MS - LEASE_MS);
    const wasDisturbed = (disturbances.get(owner) ?? []).some((atMs) => atMs >= sinceMs);
    if (dead.has(owner) || now <= (pausedUntil.get(owner) ?? -Infinity) || wasDisturbed) return;
    say('a crash has a cause', `job ${id} of ${owner}, call ${call}, at ${Math.round(now)}`);
  };

  const worked = async (process: Process<Request>, job: Job, context: JobContext<MemoryJobTransaction>) => {
    const run: SeenRun = {
      id: job.id,
      token: context.signal.aborted ? '0' : context.fencingToken,
      attempt: job.attempt,
      atMs: clock.now(),
      isAborted: () => context.signal.aborted,
      isAlive: process.alive,
      isOver: false,
    };
    check(job, run);
    runs.push(run);
    inHand.get(process)?.set(job, run);
    try {
      return await outcomeOf(job, context, process);
    } finally {
      run.isOver = true;
      inHand.get(process)?.delete(job);
    }
  };
  const inHand = new Map<Process<Request>, Map<Job, SeenRun>>();

  const check = (job: Job, run: SeenRun): void => {
    const text = `job ${job.id}, attempt ${job.attempt}, at ${Math.round(clock.monotonic())}`;
    if (run.isAborted()) return say('a run starts under its lease', text);
    const others = runs.filter((one) => one.id === job.id && !one.isOver && one.isAlive());
    if (others.some((one) => !one.isAborted())) say('no two runs are live', text);
    const starts = runs.filter(({ id, atMs }) => id === job.id && atMs > quietMs).length;
    if (job.attempt > job.maxAttempts || job.crashes >= 3 || starts > MOST_STARTS)
      say('runs are bounded', text);
    if (run.atMs < (failedAt.get(job.id) ?? -Infinity)) say('a retry waits for its time', text);
    const { claimedMs = 0 } = table.jobs.get(Number(job.id)) ?? {};
    if (claimedMs > (cancelledMs.get(job.id) ?? Infinity)) say('a cancelled job does not start', text);
  };

  const outcomeOf = async (
    job: Job,
    context: JobContext<MemoryJobTransaction>,
    process: Process<Request>,
  ): Promise<JobOutcome> => {
    const { workMs, number } = job.payload as Payload;
    const kind = job.kind as Kind;
    if (kind === 'deaf') return new Promise(() => {});
    await sleep(process.clock, workMs);
    switch (kind) {
      case 'poison': {
        for (const [other, run] of inHand.get(process) ?? []) {
          if (other.id === job.id || other.kind === 'poison' || run.isAborted()) continue;
          const pair = `poison ${job.id}, innocent ${other.id}`;
          hits.set(pair, (hits.get(pair) ?? 0) + 1);
          if ((hits.get(pair) ?? 0) > 1) say('a poison hits an innocent once', pair);
        }
        process.crash();
        return new Promise(() => {});
      }
      case 'failing':
        if (job.attempt <= 2) throw new TransientError('BROKEN', 'it broke');
        return ack();
      case 'chain':
        return complete({
          enqueue: [{ role: 'r', kind: 'plain', payload: { workMs: 0, number } }],
        });
      case 'effect': {
        const tx = await context.transaction();
        const name = `effects of ${job.id}`;
        tx.set(name, Number((await tx.get(name)) ?? 0) + 1);
        return ack();
      }
      case 'plain':
        return ack();
    }
  };

  const seats = supervise(SEATS, (seat, replace) => {
    let owner = '';
    const note = (): void =>
      void disturbances.set(owner, [...(disturbances.get(owner) ?? []), clock.monotonic()]);
    /** Whether the reply to each call was lost. */
    const recent: boolean[] = [];
    const process = startProcess<Request>(clock, {
      faultOf() {
        if (isDown()) return { kind: 'refused' };
        const fault = hasFaults() ? nextFault() : undefined;
        recent.push(fault?.kind === 'reply lost');
        const isDeaf = recent.slice(-RECENT).filter(Boolean).length > MOST_LOST;
        if (isDeaf || (fault !== undefined && fault.kind !== 'reply lost')) note();
        return fault;
      },
      dies: (request, when) => hasFaults() && due.dies(`${when} ${request}`),
      lost: (_request, how) => storeUnavailable(how),
      died() {
        dead.add(owner);
        clock.after(1_000, replace);
      },
    });
    inHand.set(process, new Map());
    const wrong = schedule.skews[seat % schedule.skews.length] ?? 0;
    const skewed: Clock = { ...process.clock, now: () => clock.now() + wrong };
    const store = memoryJobsBy(watched, {
      clock: way.storeClock?.(clock, skewed) ?? clock,
      network: (request, send) => process.call(request as Request, send),
      table,
      startedMs,
    });
    const seenStore = way.renews === false ? withoutRenewals(store) : store;
    const handle = (job: Job, context: JobContext<MemoryJobTransaction>) => worked(process, job, context);
    const role = {
      lease: `${LEASE_MS}ms`,
      runTimeout: `${MAX_RUN_MS}ms`,
      retry: { min: `${RETRY_MS}ms`, max: '1m' },
      handle: Object.fromEntries(KINDS.map((kind) => [kind, handle])),
    } as const;
    const options = { clock: skewed, log: silent, random: () => 0.5, drainOnSigterm: false, concurrency: 3 };
    const settings = workerSettings({ r: role }, options);
    ({ owner } = workerBy({ ...WORKER_RULES, ...way.worker }, seenStore, settings));
    return {
      process,
      store,
      pause(milliseconds: number) {
        const untilMs = clock.monotonic() + milliseconds + CAUSE_MS;
        pausedUntil.set(owner, Math.max(untilMs, pausedUntil.get(owner) ?? 0));
        process.pause(milliseconds);
      },
    };
  });

  for (const { at, seat, milliseconds } of schedule.pauses) {
    clock.after(at, () => seats.at(seat).pause(milliseconds));
  }
  if (way.forgets && schedule.outage !== undefined) {
    clock.after(schedule.outage.at, () => {
      for (const [id, record] of table.jobs) {
        const before = claimedFrom.get(id);
        const isFresh = record.state === 'running' && record.claimedMs > clock.now() - FORGOTTEN_MS;
        if (isFresh && before !== undefined) table.jobs.set(id, before);
      }
    });
  }
  const enqueue = async (number: number, planned: PlannedJob): Promise<void> => {
    const { maxAttempts, cancelMs } = planned;
    const key = planned.key === 3 ? undefined : planned.key;
    const base = { role: 'r', maxAttempts } as const;
    // What has one key is one request.
    const job: NewJob =
      key === undefined
        ? { ...base, kind: planned.kind, payload: { workMs: planned.workMs, number } }
        : { ...base, kind: 'effect', payload: { workMs: key * 20_000, number: key }, key: `key ${key}` };
    for (let tries = 0; tries < 5; tries += 1) {
      const { store, process } = seats.at(planned.seat + tries);
      try {
        const [answer] = await store.transact((tx) => store.write(tx, [job]));
        if (answer === undefined || answer.kind === 'conflict') return;
        confirmed.push({ id: answer.id, key });
        if (cancelMs === undefined) return;
        await sleep(process.clock, cancelMs);
        await store.cancel(answer.id);
        return;
      } catch {
        // Without a key it may be there: another try would be another job.
        if (key === undefined) return;
        await sleep(clock, 1_000);
      }
    }
  };
  for (const [number, job] of schedule.jobs.entries()) clock.after(job.at, () => void enqueue(number, job));

  // Beyond the last request that is on its way.
  await clock.advance(FAULTS_END_MS + 60_000);
  while (table.jobs.size > 0 && seen.length === 0 && clock.monotonic() < LIMIT_MS)
    await clock.advance(60_000);
  return violations(table, { runs, confirmed, violations: seen });
}

/** A worker of this store thinks that it has renewed. */
function withoutRenewals<Store extends ReturnType<typeof memoryJobsBy>>(store: Store): Store {
  return {
    ...store,
    async exchange(owner: string, call: number, what: Parameters<Store['exchange']>[2]) {
      const answer = await store.exchange(owner, call, { ...what, renew: [] });
      return { ...answer, renewed: what.renew.map(() => ({ kind: 'renewed', cancelAsked: false })) };
    },
  };
}
