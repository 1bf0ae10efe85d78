/**
 * Random schedules over several workers. Whatever happens to the workers and to the store's replies: first runs per
 * key are 1, 2, 3, …, a repeat happens only after a lost lease, nothing is lost, and all is drained in the end.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { codeOf } from '../errors.ts';
import { CONSUMER, keysOf, type Plan, simulate, type Simulated } from './testing/simulation.ts';

const RUNS = Number(process.env.ORDER_SCHEDULES ?? 300);

const plans = (faultRate: fc.Arbitrary<number>): fc.Arbitrary<Plan> =>
  fc.record({
    seed: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    workers: fc.integer({ min: 1, max: 4 }),
    keys: fc.integer({ min: 1, max: 2 }),
    numbers: fc.integer({ min: 1, max: 9 }),
    faultRate,
    duplicates: fc.constantFrom(0, 0.3),
    conflicts: fc.constantFrom(0, 0.2),
    poison: fc.constantFrom(0, 0.2),
    spreadMs: fc.constantFrom(1, 2_000, 60_000, 200_000),
  });

test('keeps every promise in random schedules with crashes, stalls, lost and late requests', async () => {
  let faults = 0;
  let repeats = 0;
  await fc.assert(
    fc.asyncProperty(plans(fc.constantFrom(0.01, 0.03, 0.08, 0.2)), async (plan) => {
      const run = await simulate(plan);
      check(plan, run);
      faults += run.faults;
      repeats += run.witness.effects.length - plan.keys * plan.numbers;
    }),
    { numRuns: RUNS },
  );
  // A search that never met a fault or a repeat would prove nothing.
  assert.ok(faults > RUNS, `only ${faults} faults in ${RUNS} schedules`);
  assert.ok(repeats > 0, 'no schedule repeated a number');
});

test('runs every number exactly once when nothing goes wrong', async () => {
  await fc.assert(
    fc.asyncProperty(plans(fc.constant(0)), async (plan) => {
      const run = await simulate(plan);
      check(plan, run);
      assert.equal(run.witness.effects.length, plan.keys * plan.numbers);
    }),
    { numRuns: Math.ceil(RUNS / 4) },
  );
});

function check(plan: Plan, { sent, settled, store, witness }: Simulated): void {
  assert.deepEqual(witness.violations, []);
  const contents = new Map<string, string>();
  for (const key of keysOf(plan)) {
    const ref = { consumer: CONSUMER, key };
    const firsts: number[] = [];
    for (const effect of witness.effects.filter((one) => one.key === key)) {
      const name = `${key}#${effect.number}`;
      if (!contents.has(name)) firsts.push(effect.number);
      assert.equal(contents.get(name) ?? effect.content, effect.content, `${name} ran with two contents`);
      contents.set(name, effect.content);
    }
    assert.deepEqual(
      firsts,
      Array.from({ length: plan.numbers }, (_, index) => index + 1),
      `first runs of ${key}`,
    );
    const state = store.stateOf(ref);
    assert.equal(state?.last, plan.numbers, `${key} is not at its end`);
    assert.deepEqual(
      [state?.lease, state?.readyAt, state?.waitingSince, state?.run, store.heldNumbers(ref)],
      [null, null, null, null, []],
      `${key} is not at rest`,
    );
  }
  for (const message of sent) {
    const outcome = settled.get(message.id);
    assert.ok(outcome !== undefined, `${message.id} (${message.content}) was never settled`);
    const ran = contents.get(`${message.key}#${message.number}`) === message.content;
    if (outcome.kind === 'ack') assert.ok(ran, `${message.content} was acknowledged and never ran`);
    else {
      assert.ok(outcome.kind === 'deadLetter' && codeOf(outcome.error) === 'SEQUENCE_CONFLICT');
      assert.ok(!ran, `${message.content} ran and was dead-lettered`);
    }
  }
}
