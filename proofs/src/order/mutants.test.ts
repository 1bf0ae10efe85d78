/**
 * Named mistakes, each of which the simulation or a single schedule must notice; and, under the same conditions, a
 * consumer that refuses what is early.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compose, type Handler } from '../../../shared/src/handler.ts';
import { ack, retry } from '../../../shared/src/outcome.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import { refusingGate, deliverAll } from './baseline.ts';
import { bench, CONSUMER, messageOf, SOURCE } from './bench.ts';
import type { Store } from './faulty-store.ts';
import * as mutations from './mutation.ts';
import type { Mutation } from './mutation.ts';
import { checkPromises } from './promises.ts';
import { contextFor, type Schedule } from './schedule.ts';
import { simulate } from './simulation.ts';

Error.stackTraceLimit = 0;

const PLAN: Schedule = {
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
  onPoison: 'block',
  operated: true,
  onGap: 'wait',
  repairs: false,
  large: false,
  woken: false,
  spreadMs: 2_000,
  inTurn: false,
};

/** The number of schedules until one broke a promise; 0 when none of `limit` did. */
async function noticed(mutation: Mutation, plan: Partial<Schedule>, limit: number): Promise<number> {
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

const searched: Readonly<Record<string, readonly [Mutation, Partial<Schedule>]>> = {
  'pointer and removals in two commits': [mutations.twoCommits, { faultRate: 0.2 }],
  'a hold without the count': [mutations.uncountedHold, {}],
  'a lease without the time of a visit': [mutations.leaseWithoutVisit, {}],
  'a release that shows nothing of what is held': [mutations.blindRelease, { dropped: 0.2 }],
  'a look that hides held messages': [mutations.blindLook, {}],
  'a document read as if nothing were held': [mutations.unseen, {}],
  'no identity of what is done or started': [mutations.noIdentity, { conflicts: 0.3 }],
  'a commit whatever was committed meanwhile': [mutations.unconditional, {}],
  'ack without a confirming commit': [mutations.ackWithoutCommit, { faultRate: 0.2 }],
  'numbers of a batch whose process died, started as any others': [
    mutations.suspectsAreForgotten,
    { fatal: 0.3, operated: false, inTurn: true },
  ],
  'attempts counted for claims in progress elsewhere': [
    mutations.countsElsewhere,
    { faultRate: 0, operated: false, failing: 0.5 },
  ],
};

for (const [name, [mutation, plan]] of Object.entries(searched)) {
  test(`mutant: ${name} is noticed`, async (context) => {
    const schedules = await noticed(mutation, plan, 400);
    context.diagnostic(`in schedule ${schedules}`);
    assert.notEqual(schedules, 0);
    assert.equal(await noticed({}, plan, 20), 0, 'without the mutation nothing is');
  });
}

const REF = { consumer: CONSUMER, source: SOURCE, key: 'k' };

test('mutant: a stale ack that hosts nothing leaves a stream, without a sweep', async () => {
  const hidden: Mutation = {
    store: (store) => ({
      ...store,
      async read(ref) {
        const document = await store.read(ref);
        return document.state === undefined
          ? document
          : { ...document, state: { ...document.state, nextTryAt: Infinity } };
      },
    }),
  };
  for (const [mutation, last] of [[{} as Mutation, 3] as const, [hidden, 2] as const]) {
    const { clock, store } = bench();
    // Another process each time.
    const deliver = (number: number, seen: Store = store) =>
      compose(async () => ack(), [orderedDelivery(seen, { clock }).middleware])(
        messageOf(number),
        contextFor(clock, 60_000, CONSUMER),
      );
    for (const number of [1, 3]) await deliver(number);
    const { version, state } = await store.read(REF);
    assert.ok(state !== undefined);
    // The state that a batch leaves whose time was over.
    const patch = {
      commit: 'left',
      last: 2,
      readyAt: clock.now(),
      waitingSince: null,
      gapAt: null,
      recentHashes: ['', ''],
    };
    await store.commit(
      REF,
      { version, state: { ...state } },
      { patch: { ...patch, recentHashes: [...state.recentHashes, ''] } },
    );
    assert.equal((await deliver(1, mutation.store?.(store) ?? store)).kind, 'ack');
    assert.equal(store.stateOf(REF)?.last, last);
  }
});

test('mutant: deliveries that start what has failed use up the attempts of innocent messages', async () => {
  const nativeMax = 5;
  const deliveriesOf = async (isMutant: boolean, rule: boolean): Promise<number> => {
    const { clock, store } = bench();
    let failures = 0;
    const handler: Handler = async (message) => {
      if (message.attributes.sequence !== '2') return ack();
      failures += 1;
      return retry(new Error('for ever'));
    };
    const seen = rule ? store : mutations.withoutRuleOfFailedNumbers.store?.(store);
    // Another process each time, so that nothing is remembered.
    const deliver = (number: number) =>
      compose(handler, [orderedDelivery(seen ?? store, { clock, retry: { maxAttempts: 100 } }).middleware])(
        messageOf(number),
        contextFor(clock, 60_000, CONSUMER),
      );
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

test('a consumer that refuses what is early gets about n²/2 deliveries, and the resequencer n', async () => {
  for (const count of [50, 100]) {
    const refusing = await deliverAll(refusingGate(), count, { seed: 7 });
    assert.deepEqual(
      refusing.ran,
      Array.from({ length: count }, (_, index) => index + 1),
    );
    const half = (count * count) / 2;
    assert.ok(refusing.deliveries > 0.6 * half && refusing.deliveries < 1.5 * half, `${refusing.deliveries}`);
    const { clock, store } = bench();
    const ours = await deliverAll(orderedDelivery(store, { clock }).middleware, count, { seed: 7, clock });
    assert.deepEqual([ours.ran, ours.deliveries], [refusing.ran, count]);
  }
});

test('a consumer that refuses what is early stalls at a number whose publisher died; the resequencer waits without deliveries', async () => {
  const refusing = await deliverAll(refusingGate(), 30, { seed: 3, missing: 10, limit: 5_000 });
  assert.deepEqual([refusing.ran.length, refusing.deliveries], [9, 5_000]);
  const { clock, store, state } = bench();
  const gate = orderedDelivery(store, { clock }).middleware;
  const ours = await deliverAll(gate, 30, { seed: 3, missing: 10, limit: 5_000, clock });
  assert.deepEqual([ours.ran.length, ours.deliveries], [9, 29]);
  assert.deepEqual([state().gapAt, state().waitingSince !== null], [9, true]);
});
