/**
 * In-order delivery in front of `once`: a number that runs again after a lost lease is a duplicate there, so that each
 * number takes effect once. The claims of this model are sound; all faults are in front of them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { memoryClaims } from '../../../shared/src/dedup/memory.ts';
import { compose } from '../../../shared/src/handler.ts';
import type { Mutation } from './mutation.ts';
import type { Schedule } from './schedule.ts';
import { checkPromises } from './promises.ts';
import { simulate } from './simulation.ts';

Error.stackTraceLimit = 0;

const SCHEDULES = Number(process.env['TEST_SCHEDULES'] ?? 200);
/** The same each time; another one is asked for with TEST_SEED. A failure prints its schedule. */
const SEED = Number(process.env['TEST_SEED'] ?? 20_260_101);

/**
 * Longer leases than those of the stream, as in production: a claim outlives the process that took it, and a handler that
 * ignores its signal (40 s at most here), beside which no claim can keep a second one from starting.
 */
const once = (): Mutation => {
  let claims: ReturnType<typeof memoryClaims> | undefined;
  return {
    behindOnce: true,
    handler(handler, clock) {
      claims ??= memoryClaims({ clock });
      return compose(handler, [dedup(claims, { clock, lease: '60s', waitBudget: '1s' })]);
    },
  };
};

const plans: fc.Arbitrary<Schedule> = fc.record({
  seed: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  workers: fc.integer({ min: 1, max: 4 }),
  keys: fc.integer({ min: 1, max: 2 }),
  numbers: fc.integer({ min: 1, max: 8 }),
  faultRate: fc.constantFrom(0.03, 0.08, 0.2),
  duplicates: fc.constantFrom(0, 0.3),
  conflicts: fc.constant(0),
  failing: fc.constantFrom(0, 0.2),
  fatal: fc.constantFrom(0, 0.1),
  dropped: fc.constantFrom(0, 0.1),
  resets: fc.constant(0),
  onPoison: fc.constantFrom('block', 'skip'),
  operated: fc.boolean(),
  onGap: fc.constantFrom('wait', 'skip'),
  repairs: fc.boolean(),
  large: fc.boolean(),
  woken: fc.boolean(),
  spreadMs: fc.constantFrom(1, 2_000, 60_000),
  inTurn: fc.boolean(),
});

/** Schedules in which a number took effect twice. */
async function search(mutation: () => Mutation): Promise<Readonly<{ twice: number; duplicates: number }>> {
  let [twice, duplicates] = [0, 0];
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      const run = await simulate(plan, mutation());
      checkPromises(plan, run);
      const names = run.recording.effects.map(({ key, number }) => `${key}#${number}`);
      twice += Number(names.length > new Set(names).size);
      duplicates += run.recording.starts.count - names.length;
    }),
    { numRuns: SCHEDULES, seed: SEED },
  );
  return { twice, duplicates };
}

test('with once inside, each number takes effect once, whatever in-order delivery has to repeat', async () => {
  const [bare, guarded] = [await search(() => ({})), await search(once)];
  // Without it some schedules have repeats.
  assert.ok(bare.twice > 0);
  assert.equal(guarded.twice, 0);
});

// Found with another seed, about once in a thousand schedules: the client repeated a transaction that the process had
// abandoned, while the batch that it was about was running.
test('a transaction that was abandoned changes nothing when the client repeats it', async () => {
  const plan: Schedule = {
    seed: 1_392_788_319,
    workers: 4,
    keys: 2,
    numbers: 6,
    faultRate: 0.08,
    duplicates: 0.3,
    conflicts: 0,
    failing: 0.2,
    fatal: 0.1,
    dropped: 0,
    resets: 0,
    onPoison: 'block',
    operated: false,
    onGap: 'wait',
    repairs: false,
    large: false,
    woken: true,
    spreadMs: 60_000,
    inTurn: false,
  };
  checkPromises(plan, await simulate(plan, {}));
});
