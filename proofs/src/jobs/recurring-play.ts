/**
 * Plays one schedule of workers that make recurring jobs, on virtual time, and says which invariants it broke.
 *
 * Two processes share one store and look every 30 s. Each is paused, dies at any request and is replaced, now or minutes
 * later; requests are lost, late or repeated, and wall clocks are wrong. The two may have different expressions under one
 * name, as in a deployment. After a while nothing fails any more.
 */
import fc from 'fast-check';
import { type Clock, sleep } from '../../../shared/src/clock.ts';
import { storeUnavailable } from '../../../shared/src/errors.ts';
import { silent } from '../../../shared/src/log.ts';
import type { JobStore } from '../../../shared/src/jobs/job-store.ts';
import {
  memoryJobs,
  memoryJobsBy,
  type MemoryJobTransaction,
  STORE_RULES,
  type StoreRules,
} from '../../../shared/src/jobs/memory.ts';
import { type JobTable, memoryJobTable } from '../../../shared/src/jobs/memory-table.ts';
import {
  type CheckedRecurrence,
  checkRecurrences,
  RECURRENCE_RULES,
  type RecurrenceRules,
} from '../../../shared/src/jobs/recurrence.ts';
import { recurringJobs } from '../../../shared/src/jobs/recurring.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import { drawnFaults } from '../engine/arbitraries.ts';
import { inTurn, type NetworkFault } from '../engine/faults.ts';
import { type Death, type Named, placesOf, plannedDeaths } from '../engine/places.ts';
import { startProcess } from '../engine/process.ts';
import { supervise } from '../engine/supervisor.ts';

const REQUESTS = ['recurrences', 'recur'] as const;
type Request = (typeof REQUESTS)[number];
type Site = Named<Request>;
export const sites: readonly Site[] = placesOf(REQUESTS);

export type Invariant =
  | 'a due time is one job'
  | 'no due time is lost'
  | 'none is made before its time'
  | 'due times are made in order';

type Store = JobStore<MemoryJobTransaction>;

/** What a mutant changes. */
export type Way = Readonly<{
  rules?: Partial<RecurrenceRules>;
  mayDecide?: StoreRules['mayDecide'];
  /** The store as a process sees it. */
  store?: (store: Store, process: Readonly<{ clock: Clock; table: JobTable }>) => Store;
}>;

export const asBuilt: Way = {};

export type Schedule = Readonly<{
  missed: 'skip' | 'one' | 'all';
  /** The second process has another expression. */
  isMixed: boolean;
  faults: readonly (NetworkFault | undefined)[];
  /** The so many-th commit of jobs is on its way for so long. */
  stalls: readonly Readonly<{ hit: number; milliseconds: number }>[];
  pauses: readonly Readonly<{ at: number; slot: number; milliseconds: number }>[];
  deaths: readonly Death<Site>[];
  /** How long a slot stays empty. */
  restartMs: number;
  /** How wrong the wall clock of each process is. */
  skews: readonly [number, number];
}>;

const FAULTS_END_MS = 1_800_000;
const QUIET_MS = 900_000;
const LOOK_MS = 30_000;
/** From here on each process is there and looks in time. */
const CALM_MS = FAULTS_END_MS + 600_000;

export const schedules: fc.Arbitrary<Schedule> = fc.record({
  missed: fc.constantFrom('skip', 'one', 'all', 'all'),
  isMixed: fc.boolean(),
  faults: fc.oneof(
    fc.constant<readonly (NetworkFault | undefined)[]>([undefined]),
    fc.array(
      drawnFaults(
        { none: 20, lost: 2 },
        [{ kind: 'refused' }, { kind: 'reply lost' }, { kind: 'repeated' }],
        'late copy',
      ),
      { minLength: 1, maxLength: 60 },
    ),
  ),
  stalls: fc.array(
    fc.record({
      hit: fc.integer({ min: 1, max: 12 }),
      milliseconds: fc.integer({ min: 60_000, max: 500_000 }),
    }),
    { maxLength: 4 },
  ),
  pauses: fc.array(
    fc.record({
      at: fc.nat(FAULTS_END_MS - 400_000),
      slot: fc.nat(1),
      milliseconds: fc.integer({ min: 10_000, max: 400_000 }),
    }),
    { maxLength: 6 },
  ),
  deaths: fc.array(fc.record({ place: fc.constantFrom(...sites), hit: fc.integer({ min: 1, max: 12 }) }), {
    maxLength: 4,
  }),
  restartMs: fc.constantFrom(1_000, 60_000, 500_000),
  skews: fc.tuple(fc.integer({ min: -90_000, max: 90_000 }), fc.integer({ min: -90_000, max: 90_000 })),
});

/** Each sixth minute is a due time of both. */
const CRONS = ['*/2 * * * *', '*/3 * * * *'] as const;

export async function play(
  way: Way,
  schedule: Schedule,
  died: (site: Site) => void = () => {},
): Promise<readonly Readonly<{ invariant: Invariant; text: string }>[]> {
  const { missed, isMixed, restartMs } = schedule;
  const clock = virtualClock();
  const startMs = clock.now();
  const table = memoryJobTable();
  const nextFault = inTurn(schedule.faults);
  const due = plannedDeaths(schedule.deaths, died);
  let commits = 0;
  const faultOf = (request: Request): NetworkFault | undefined => {
    if (!hasFaults()) return undefined;
    if (request === 'recur') commits += 1;
    const stall = request === 'recur' ? schedule.stalls.find(({ hit }) => hit === commits) : undefined;
    return stall === undefined ? nextFault() : { kind: 'none', beforeMs: stall.milliseconds };
  };
  const hasFaults = (): boolean => clock.monotonic() < FAULTS_END_MS;
  const recurrenceOf = (slot: number): CheckedRecurrence => {
    const cron = CRONS[isMixed ? slot : 0] ?? CRONS[0];
    const [one] = checkRecurrences('recurring', {
      tick: { cron, missed, missedLimit: 1_000, role: 'r', kind: 'k', payload: (at: Date) => at.getTime() },
    });
    if (one === undefined) throw new Error('no recurrence');
    return one;
  };
  const known = [0, 1].map(recurrenceOf);
  // Both begin now.
  await memoryJobs({ clock, table }).recurrences(known.map(({ id }) => id));

  const slots = supervise(2, (slot, replace) => {
    const process = startProcess<Request>(clock, {
      faultOf,
      dies: (request, when) => hasFaults() && due.dies(`${when} ${request}`),
      lost: (_request, how) => storeUnavailable(how),
      died: () => void clock.after(restartMs, replace),
    });
    const wrong = schedule.skews[slot] ?? 0;
    const own: Clock = { ...process.clock, now: () => clock.now() + wrong };
    const { mayDecide = STORE_RULES.mayDecide } = way;
    const built = memoryJobsBy(
      { ...STORE_RULES, mayDecide },
      {
        clock,
        table,
        network: (request, send) => process.call(request as Request, send),
      },
    );
    const store = way.store?.(built, { clock: own, table }) ?? built;
    const ports = { clock: own, log: silent };
    const { pass } = recurringJobs({ ...RECURRENCE_RULES, ...way.rules }, store, [recurrenceOf(slot)], ports);
    const loop = async (): Promise<void> => {
      while (process.alive() && clock.monotonic() < FAULTS_END_MS + QUIET_MS) {
        await pass();
        await sleep(own, LOOK_MS);
      }
    };
    void loop();
    return process;
  });
  for (const { at, slot, milliseconds } of schedule.pauses) {
    clock.after(at, () => slots.at(slot).pause(milliseconds));
  }
  await clock.advance(FAULTS_END_MS + QUIET_MS);
  return violations(table, { schedule, known, startMs });
}

function violations(
  table: JobTable,
  {
    schedule: { missed, isMixed },
    known,
    startMs,
  }: Readonly<{ schedule: Schedule; known: readonly CheckedRecurrence[]; startMs: number }>,
) {
  const broken: Readonly<{ invariant: Invariant; text: string }>[] = [];
  const say = (invariant: Invariant, ms: number): void =>
    void broken.push({ invariant, text: `at ${(ms - startMs) / 1_000} s` });
  const jobs = [...table.jobs.values()].toSorted((one, other) => one.id - other.id);
  const made = new Set<number>();
  let lastMs = 0;
  for (const { payload, createdMs } of jobs) {
    const at = Number(payload);
    if (made.has(at)) say('a due time is one job', at);
    if (createdMs < at) say('none is made before its time', at);
    // Two expressions are two orders.
    if (!isMixed && at < lastMs) say('due times are made in order', at);
    made.add(at);
    lastMs = at;
  }
  // What was missed while faults were on is made by one policy alone; what comes after it is made by each.
  const fromMs = startMs + (missed === 'all' ? 0 : CALM_MS);
  const toMs = startMs + FAULTS_END_MS + QUIET_MS - 2 * LOOK_MS;
  for (const { dueTimes } of known) {
    for (let at = dueTimes.after(fromMs); at !== undefined && at < toMs; at = dueTimes.after(at))
      if (!made.has(at)) say('no due time is lost', at);
  }
  return broken;
}
