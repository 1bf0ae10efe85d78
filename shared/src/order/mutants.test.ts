/**
 * Named mistakes, each of which the simulation or a single schedule must notice; and the algorithm that numbers its
 * messages and refuses what is early, in the same surroundings.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compose, type Handler } from '../handler.ts';
import { ack, type Outcome, retry } from '../outcome.ts';
import { inOrder } from './in-order.ts';
import { freshKey } from './key-state.ts';
import { articleGate, deliverAll } from './testing/article.ts';
import { bench, CONSUMER, messageOf } from './testing/bench.ts';
import * as mutations from './testing/mutation.ts';
import type { Mutation } from './testing/mutation.ts';
import { checkPromises } from './testing/promises.ts';
import { contextFor, type Plan } from './testing/plan.ts';
import { simulate } from './testing/simulation.ts';

Error.stackTraceLimit = 0;

const PLAN: Plan = {
  seed: 0,
  workers: 3,
  keys: 2,
  numbers: 7,
  faultRate: 0.08,
  duplicates: 0.3,
  conflicts: 0,
  failing: 0.2,
  fatal: 0,
  dropped: 0,
  resets: 0,
  poison: 'halt',
  operated: true,
  gaps: 'wait',
  repairs: false,
  large: false,
  woken: false,
  atOnce: false,
  spreadMs: 2_000,
  inTurn: false,
};

/** The number of schedules it took until one was noticed; 0 when none of `limit` was. */
async function noticed(mutation: Mutation, plan: Partial<Plan>, limit: number): Promise<number> {
  for (let seed = 1; seed <= limit; seed += 1) {
    const drawn = { ...PLAN, ...plan, seed };
    const run = await simulate(drawn, mutation);
    try {
      checkPromises(drawn, run);
    } catch (error) {
      if (!(error instanceof assert.AssertionError)) throw error;
      return seed;
    }
  }
  return 0;
}

const IN_TURN = { inTurn: true, spreadMs: 1, failing: 0 } as const;
const searched: Readonly<Record<string, readonly [Mutation, Partial<Plan>]>> = {
  'pointer and deletes in two commits': [mutations.twoCommits, { faultRate: 0.2 }],
  'holding something for a key that somebody works on, without its showing': [mutations.unmarked, IN_TURN],
  'counting as done behind a read that does not see that something is held': [mutations.unseen, IN_TURN],
  'release without a look at what is held': [mutations.blindRelease, {}],
  'no identity check': [mutations.noIdentity, { conflicts: 0.3 }],
  'ack without a confirming commit': [mutations.ackWithoutCommit, { faultRate: 0.2 }],
  'attempts counted for claims in progress elsewhere': [
    mutations.countsElsewhere,
    { faultRate: 0, operated: false, failing: 0.5 },
  ],
};

for (const [name, [mutation, plan]] of Object.entries(searched)) {
  test(`mutant: ${name} is noticed`, async () => {
    assert.notEqual(await noticed(mutation, plan, 400), 0);
    assert.equal(await noticed({}, plan, 20), 0, 'without the mutation nothing is');
  });
}

test('mutant: a stale ack that wakes nobody leaves a key, without a sweep', async () => {
  for (const [mutation, last] of [[{}, 3] as const, [mutations.staleWakesNobody, 2] as const]) {
    const { clock, store } = bench();
    const deliver = (number: number): Promise<Outcome> => {
      const message = messageOf(number);
      const seen = (mutation as Mutation).deliveryStore?.(store, message) ?? store;
      return compose(async () => ack(), [inOrder(seen, { clock })])(
        message,
        contextFor(clock, 60_000, CONSUMER),
      );
    };
    for (const number of [1, 3]) await deliver(number);
    const ref = { consumer: CONSUMER, key: 'k' };
    const { version } = await store.read(ref);
    // As a drain leaves it whose time was over.
    await store.write(ref, { version, base: freshKey(1) }, { last: 2, readyAt: clock.now() });
    assert.equal((await deliver(1)).kind, 'ack');
    assert.equal(store.stateOf(ref)?.last, last);
  }
});

test('mutant: a nack of the drainer’s trigger uses up its deliveries, without the rule about failed heads', async () => {
  const nativeMax = 5;
  const deliveriesOf = async (isMutant: boolean, rule: boolean): Promise<number> => {
    const { clock, store } = bench();
    let failures = 0;
    const handler: Handler = async (message) => {
      if (message.attributes.sequence !== '2') return ack();
      failures += 1;
      return retry(new Error('for ever'));
    };
    const seen = rule ? store : mutations.withoutRuleOfFailedHeads.store?.(store);
    const chain = compose(handler, [inOrder(seen ?? store, { clock, maxAttempts: 100 })]);
    const deliver = (number: number) => chain(messageOf(number), contextFor(clock, 60_000, CONSUMER));
    await deliver(2);
    for (let delivery = 1; ; delivery += 1) {
      const before = failures;
      const outcome = await deliver(1);
      const isNacked = outcome.kind !== 'ack' || (isMutant && failures > before);
      if (!isNacked || delivery > nativeMax) return delivery;
      await clock.advance(120_000);
    }
  };
  assert.equal(await deliveriesOf(false, true), 1);
  assert.equal(await deliveriesOf(true, true), 2, 'the rule limits it to one nack');
  assert.ok(
    (await deliveriesOf(true, false)) > nativeMax,
    'an innocent message is in the native dead letters',
  );
});

test('the article’s algorithm delivers about n²/2 messages, and the resequencer n', async () => {
  for (const count of [50, 100]) {
    const article = await deliverAll(articleGate(), count, { seed: 7 });
    assert.deepEqual(
      article.ran,
      Array.from({ length: count }, (_, index) => index + 1),
    );
    const half = (count * count) / 2;
    assert.ok(article.deliveries > 0.6 * half && article.deliveries < 1.5 * half, `${article.deliveries}`);
    const { clock, store } = bench();
    const ours = await deliverAll(inOrder(store, { clock }), count, { seed: 7, clock });
    assert.deepEqual([ours.ran, ours.deliveries], [article.ran, count]);
  }
});

test('the article’s algorithm stalls at a number whose publisher died; the resequencer waits without deliveries', async () => {
  const article = await deliverAll(articleGate(), 30, { seed: 3, missing: 10, limit: 5_000 });
  assert.deepEqual([article.ran.length, article.deliveries], [9, 5_000]);
  const { clock, store, state } = bench();
  const ours = await deliverAll(inOrder(store, { clock }), 30, { seed: 3, missing: 10, limit: 5_000, clock });
  assert.deepEqual([ours.ran.length, ours.deliveries], [9, 29]);
  assert.deepEqual([state().gapAt, state().waitingSince !== null], [9, true]);
});
