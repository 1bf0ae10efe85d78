/**
 * Plays one schedule of workers over roles with limits, on virtual time, and says which invariants it broke.
 *
 * Three processes share one store, and each claims four jobs at a time. Each is paused, dies at any request and is replaced;
 * requests are lost, late or repeated. What runs is what the store says, so the limits are judged at each of its claims.
 */
import fc from 'fast-check';
import { storeUnavailable, TransientError } from '../../../shared/src/errors.ts';
import { silent } from '../../../shared/src/log.ts';
import { ack } from '../../../shared/src/outcome.ts';
import type { JobRecord } from '../../../shared/src/jobs/decide.ts';
import { memoryJobsBy, STORE_RULES, type StoreRules } from '../../../shared/src/jobs/memory.ts';
import { memoryJobTable } from '../../../shared/src/jobs/memory-table.ts';
import type { JobHandler } from '../../../shared/src/jobs/outcome.ts';
import { WORKER_RULES, workerBy } from '../../../shared/src/jobs/worker.ts';
import { workerSettings } from '../../../shared/src/jobs/worker-options.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import { drawnFaults } from '../engine/arbitraries.ts';
import { inTurn, type NetworkFault } from '../engine/faults.ts';
import { type Death, type Named, placesOf, plannedDeaths } from '../engine/places.ts';
import { startProcess } from '../engine/process.ts';
import { supervise } from '../engine/supervisor.ts';

const REQUESTS = ['exchange', 'adopt', 'rescue'] as const;
type Request = (typeof REQUESTS)[number];
type Site = Named<Request>;
export const sites: readonly Site[] = placesOf(REQUESTS);

export type Invariant =
  | 'no more of a role run'
  | 'no more of a key run'
  | 'no more of a role start'
  | 'no more of a key start'
  | 'no job is held back for ever';

/** What a mutant changes. */
export type Way = Partial<StoreRules>;
export const asBuilt: Way = {};

type PlannedJob = Readonly<{ at: number; limitKey: string; workMs: number; fails: boolean }>;
export type Schedule = Readonly<{
  jobs: readonly PlannedJob[];
  running: number;
  runningPerKey: number;
  starts: number;
  startsPerKey: number;
  faults: readonly (NetworkFault | undefined)[];
  pauses: readonly Readonly<{ at: number; slot: number; milliseconds: number }>[];
  deaths: readonly Death<Site>[];
}>;

const FAULTS_END_MS = 200_000;
const PERIOD_MS = 20_000;
const LIMIT_MS = 7_200_000;

export const schedules: fc.Arbitrary<Schedule> = fc.record({
  jobs: fc.array(
    fc.record({
      at: fc.nat(60_000),
      limitKey: fc.constantFrom('a', 'a', 'b', 'c', ''),
      workMs: fc.constantFrom(0, 2_000, 40_000),
      fails: fc.boolean(),
    }),
    { minLength: 4, maxLength: 20 },
  ),
  running: fc.integer({ min: 1, max: 4 }),
  runningPerKey: fc.integer({ min: 1, max: 2 }),
  starts: fc.integer({ min: 1, max: 5 }),
  startsPerKey: fc.integer({ min: 1, max: 3 }),
  faults: fc.array(
    drawnFaults({ none: 25, lost: 2 }, [{ kind: 'refused' }, { kind: 'reply lost' }], 'delayed'),
    { minLength: 1, maxLength: 40 },
  ),
  pauses: fc.array(
    fc.record({
      at: fc.nat(FAULTS_END_MS - 90_000),
      slot: fc.nat(2),
      milliseconds: fc.integer({ min: 1_000, max: 90_000 }),
    }),
    { maxLength: 3 },
  ),
  deaths: fc.array(fc.record({ place: fc.constantFrom(...sites), hit: fc.constantFrom(1, 2, 5, 20) }), {
    maxLength: 3,
  }),
});

export async function play(
  way: Way,
  schedule: Schedule,
  died: (site: Site) => void = () => {},
): Promise<readonly Readonly<{ invariant: Invariant; text: string }>[]> {
  const clock = virtualClock();
  const table = memoryJobTable();
  const hasFaults = (): boolean => clock.monotonic() < FAULTS_END_MS;
  const nextFault = inTurn(schedule.faults);
  const due = plannedDeaths(schedule.deaths, died);
  const broken: Readonly<{ invariant: Invariant; text: string }>[] = [];
  const starts: Readonly<{ atMs: number; limitKey: string | undefined }>[] = [];
  const { running, runningPerKey, starts: most, startsPerKey } = schedule;

  const check = (invariant: Invariant, found: number, accepted: number): void => {
    if (found <= accepted) return;
    broken.push({ invariant, text: `${found} of ${accepted} at ${Math.round(clock.monotonic())}` });
  };
  const judge = ({ id, limitKey }: JobRecord): void => {
    const nowMs = clock.now();
    starts.push({ atMs: nowMs, limitKey });
    // The one that is claimed now is not stored as running yet.
    const runs = [...table.jobs.values()].filter((one) => one.id !== id && one.state === 'running');
    const recent = starts.filter(({ atMs }) => atMs > nowMs - PERIOD_MS);
    check('no more of a role run', runs.length + 1, running);
    check('no more of a role start', recent.length, most);
    if (limitKey === undefined) return;
    check('no more of a key run', runs.filter((one) => one.limitKey === limitKey).length + 1, runningPerKey);
    check('no more of a key start', recent.filter((one) => one.limitKey === limitKey).length, startsPerKey);
  };
  const rules: StoreRules = { ...STORE_RULES, ...way };
  const watched: StoreRules = {
    ...rules,
    claim(record, request, nowMs) {
      judge(record);
      return rules.claim(record, request, nowMs);
    },
  };

  const slots = supervise(3, (_slot, replace) => {
    const process = startProcess<Request>(clock, {
      faultOf: (request) => (hasFaults() && REQUESTS.includes(request) ? nextFault() : undefined),
      dies: (request, when) => hasFaults() && due.dies(`${when} ${request}`),
      lost: (_request, how) => storeUnavailable(how),
      died: () => void clock.after(2_000, replace),
    });
    const network = <Value>(request: string, send: () => Promise<Value>): Promise<Value> =>
      process.call(request as Request, send);
    const handle: JobHandler = async (job) => {
      const { workMs, fails } = job.payload as unknown as PlannedJob;
      await new Promise<void>((resolve) => process.clock.after(workMs, resolve));
      if (fails && job.attempt === 1) throw new TransientError('BROKEN', 'it broke');
      return ack();
    };
    const limits = {
      running,
      runningPerKey,
      starts: { most, per: `${PERIOD_MS}ms` },
      startsPerKey: { most: startsPerKey, per: `${PERIOD_MS}ms` },
    } as const;
    const settings = workerSettings(
      { r: { runTimeout: '10m', retry: { min: '5s' }, limits, handle: { k: handle } } },
      { clock: process.clock, log: silent, random: () => 0.5, drainOnSigterm: false, concurrency: 4 },
    );
    workerBy(WORKER_RULES, memoryJobsBy(watched, { clock, table, network }), settings);
    return process;
  });
  for (const { at, slot, milliseconds } of schedule.pauses) {
    clock.after(at, () => slots.at(slot).pause(milliseconds));
  }
  const store = memoryJobsBy(rules, { clock, table });
  for (const job of schedule.jobs) {
    const { at, limitKey } = job;
    const enqueue = () =>
      store.submit([
        { role: 'r', kind: 'k', payload: job, maxAttempts: 100, ...(limitKey !== '' && { limitKey }) },
      ]);
    clock.after(at, () => void enqueue());
  }
  await clock.advance(FAULTS_END_MS);
  while (table.jobs.size > 0 && broken.length === 0 && clock.monotonic() < LIMIT_MS)
    await clock.advance(30_000);
  for (const { id, state } of broken.length === 0 ? table.jobs.values() : [])
    broken.push({ invariant: 'no job is held back for ever', text: `job ${id} is ${state}` });
  return broken;
}
