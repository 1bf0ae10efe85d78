/**
 * Random programs of sagas: what their steps are and do, when they start, and what goes wrong with processes, requests and
 * messages. Replayable from fast-check's seed.
 */
import fc from 'fast-check';
import { drawnFaults } from '../engine/arbitraries.ts';
import type { NetworkFault } from '../engine/faults.ts';
import type { Duration } from '../../../shared/src/duration.ts';
import { defineSaga, type SagaDefinition } from '../../../shared/src/sagas/definition.ts';

export type StepProgram = Readonly<{
  /** `once` refuses its first run, and would accept a second one. */
  refuses: 'never' | 'once' | 'always';
  undoRefusals: number;
  /** Its effect is a call to a service that is idempotent by key. */
  isOutside: boolean;
  isSkipped: boolean;
  replyTimeout: Duration;
  attempts: number;
}>;

export type SagaProgram = Readonly<{
  startMs: number;
  /** When copies of the start come, under identities of their own. */
  copies: readonly number[];
  /** When an operator cancels. */
  cancels: readonly number[];
  version: 1 | 2;
}>;

/** What becomes of a message that was published. */
export type Fate = Readonly<{
  delayMs: number;
  /** A second delivery of it, so much later. */
  copyMs: number | undefined;
  /** It is dead-lettered, or lost with its task. Never a start; a tick only where there is a sweep. */
  isDead: boolean;
}>;

export type SagaSchedule = Readonly<{
  /** Sizes of groups of compensable steps. */
  groups: readonly number[];
  hasPivot: boolean;
  retriables: number;
  /** The first step is done by the transaction that starts the saga. */
  isBegun: boolean;
  deadline: Duration | undefined;
  steps: readonly StepProgram[];
  sagas: readonly SagaProgram[];
  isSwept: boolean;
  fates: readonly Fate[];
  faults: readonly (NetworkFault | undefined)[];
  pauses: readonly Readonly<{ at: number; worker: number; milliseconds: number }>[];
  deaths: readonly Readonly<{ site: number; hit: number }>[];
}>;

const fault = drawnFaults({ none: 24, lost: 2 }, [{ kind: 'refused' }, { kind: 'reply lost' }], 'delayed');

const step: fc.Arbitrary<StepProgram> = fc.record({
  refuses: fc.constantFrom('never', 'never', 'never', 'once', 'always'),
  undoRefusals: fc.constantFrom(0, 0, 0, 1, 2),
  isOutside: fc.constantFrom(false, false, true),
  isSkipped: fc.constantFrom(false, false, false, false, true),
  replyTimeout: fc.constantFrom<Duration>('3s', '10s', '30s'),
  attempts: fc.integer({ min: 1, max: 3 }),
});

const fate: fc.Arbitrary<Fate> = fc.record({
  delayMs: fc.oneof(
    { weight: 6, arbitrary: fc.nat(500) },
    { weight: 2, arbitrary: fc.nat(15_000) },
    { weight: 1, arbitrary: fc.nat(300_000) },
  ),
  copyMs: fc.oneof(
    { weight: 5, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.nat(120_000) },
  ),
  isDead: fc.constantFrom(false, false, false, false, false, false, true),
});

const saga: fc.Arbitrary<SagaProgram> = fc.record({
  startMs: fc.nat(20_000),
  copies: fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(fc.nat(120_000), { maxLength: 1 }) },
  ),
  cancels: fc.oneof(
    { weight: 1, arbitrary: fc.constant([]) },
    {
      weight: 1,
      arbitrary: fc.array(fc.oneof(fc.nat(5_000), fc.nat(60_000)), { minLength: 1, maxLength: 2 }),
    },
  ),
  version: fc.constantFrom(1 as const, 1 as const, 2 as const),
});

export const schedulesOf = (sites: number): fc.Arbitrary<SagaSchedule> =>
  fc.record({
    groups: fc.array(fc.constantFrom(1, 1, 2, 3), { minLength: 1, maxLength: 3 }),
    hasPivot: fc.constantFrom(true, true, false),
    retriables: fc.constantFrom(0, 1, 1, 2),
    isBegun: fc.constantFrom(false, false, true),
    deadline: fc.constantFrom<Duration | undefined>(undefined, '20s', '90s', '10m'),
    steps: fc.array(step, { minLength: 1, maxLength: 12 }),
    sagas: fc.array(saga, { minLength: 1, maxLength: 2 }),
    isSwept: fc.constantFrom(true, true, false),
    fates: fc.array(fate, { minLength: 1, maxLength: 30 }),
    faults: fc.array(fault, { minLength: 1, maxLength: 40 }),
    pauses: fc.array(
      fc.record({
        at: fc.nat(200_000),
        worker: fc.nat(1),
        milliseconds: fc.integer({ min: 1_000, max: 140_000 }),
      }),
      { maxLength: 2 },
    ),
    deaths: fc.array(fc.record({ site: fc.nat(sites - 1), hit: fc.constantFrom(1, 1, 2, 3, 5) }), {
      minLength: 1,
      maxLength: 5,
    }),
  });

/** Nothing fails, comes late or comes twice: where a command is on its way, a lost record is another matter. */
export const calm = (schedule: SagaSchedule): SagaSchedule => ({
  ...schedule,
  isSwept: true,
  fates: [{ delayMs: 300, copyMs: undefined, isDead: false }],
  faults: [undefined],
  pauses: [],
  deaths: [],
  steps: schedule.steps.map((step) => ({ ...step, replyTimeout: '30s' })),
});

type Data = Readonly<{ id: string; seen: readonly string[] }>;

export const behaviourOf = ({ steps }: SagaSchedule, name: string): StepProgram =>
  steps[Number(name.slice(1)) % steps.length] as StepProgram;

/** Both versions have the same steps; in the second one the compensable groups stand in another order. */
export function definitionOf(schedule: SagaSchedule, version: 1 | 2): SagaDefinition {
  const { groups, hasPivot, retriables, isBegun, deadline } = schedule;
  let count = 0;
  const next = (): string => `s${(count += 1) - 1}`;
  const named = groups.map((size) => Array.from({ length: size }, next));
  const ordered = version === 1 ? named : named.toReversed();
  const pivot = next();
  const last = Array.from({ length: retriables }, next);

  const body = ({ id, seen }: Data) => ({ id, seen: seen.length });
  const common = (name: string) => {
    const { replyTimeout } = behaviourOf(schedule, name);
    const replied = (data: Data) => ({ ...data, seen: [...data.seen, name] });
    return { topic: name, replyTimeout, do: body, replied };
  };
  const skipping = (name: string) => ({ when: () => !behaviourOf(schedule, name).isSkipped });
  const compensable = (name: string) => ({
    ...common(name),
    ...skipping(name),
    undo: ({ id }: Data) => ({ id }),
    maxAttempts: behaviourOf(schedule, name).attempts,
  });

  const open = defineSaga<Data>('order', { version, ...(deadline !== undefined && { deadline }) });
  const begun = { topic: 'begun', undo: ({ id }: Data) => ({ id }) };
  // The types know which stage may follow which, and a loop does not.
  let made = (isBegun ? open.compensable('begun', begun) : open) as ReturnType<typeof open.compensable<Data>>;
  for (const group of ordered) {
    const [first = ''] = group;
    made =
      group.length === 1
        ? made.compensable(first, compensable(first))
        : made.compensableGroup(Object.fromEntries(group.map((name) => [name, compensable(name)])));
  }
  let decided = made as ReturnType<typeof open.retriable<Data>>;
  if (hasPivot)
    decided = made.pivot(pivot, { ...common(pivot), maxAttempts: behaviourOf(schedule, pivot).attempts });
  for (const name of last) decided = decided.retriable(name, { ...common(name), ...skipping(name) });
  return decided;
}
