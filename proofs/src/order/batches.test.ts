/**
 * What becomes of numbers that run together, and of those that wait beside them.
 */
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { storeUnavailable } from '../../../shared/src/errors.ts';
import { compose, type Handler } from '../../../shared/src/handler.ts';
import { ack, deadLetter, type Outcome, retry } from '../../../shared/src/outcome.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import { bench, type Bench, CONSUMER, kindOf, LEASE_MS, messageOf, REF } from './bench.ts';
import type { Store } from './faulty-store.ts';
import { contextFor } from './schedule.ts';

const numberOf = (message: { attributes: Readonly<Record<string, string>> }): number =>
  Number(message.attributes['sequence']);

async function kindsOf({ clock }: Bench, outcomes: readonly Promise<Outcome>[]): Promise<readonly string[]> {
  const kinds: string[] = [];
  for (const one of outcomes) kinds.push(kindOf(await clock.until(one)));
  return kinds;
}

test('each number of a batch runs in its own asynchronous context, and with the handler that it came to', async () => {
  const { clock, store } = bench();
  const { middleware } = orderedDelivery(store, { clock });
  const current = new AsyncLocalStorage<string>();
  const ran: string[] = [];
  const deliver = (number: number): Promise<Outcome> => {
    const handler: Handler = async (message) => {
      ran.push(`${numberOf(message)} by handler ${number} in ${current.getStore()}`);
      return ack();
    };
    const chain = compose(handler, [middleware]);
    return current.run(`context ${number}`, () =>
      chain(messageOf(number), contextFor(clock, 60_000, CONSUMER)),
    );
  };
  await Promise.all([3, 1, 2].map(deliver));
  assert.deepEqual(
    ran,
    [1, 2, 3].map((number) => `${number} by handler ${number} in context ${number}`),
  );
});

test('a failure in the middle: what ran is done, the failed number is tried again, and the rest waits behind it', async () => {
  const made = bench();
  const { clock, worker, state, runs, heldNumbers } = made;
  let isFailing = true;
  const { deliver, sweep } = worker({
    handler: async (message) => (numberOf(message) === 3 && isFailing ? retry(new Error('not yet')) : ack()),
  });
  const kinds = await kindsOf(
    made,
    [1, 2, 3, 4, 5].map((number) => deliver(number)),
  );
  assert.deepEqual(kinds, ['ack handled', 'ack handled', 'ack held', 'ack held', 'ack held']);
  assert.deepEqual([state().last, state().attempts, heldNumbers()], [2, 1, [3, 4, 5]]);
  isFailing = false;
  await clock.advance(2_000);
  await sweep();
  assert.deepEqual(
    runs.map((run) => run.split(':')[0]),
    ['1', '2', '3', '3', '4', '5'],
  );
  assert.deepEqual([state().last, state().attempts, heldNumbers()], [5, 0, []]);
});

test('what ran before a failure stays done, also where the failed number cannot be held', async () => {
  const made = bench({ maxHeldBytes: 1 });
  const { worker, state, runs } = made;
  const { deliver } = worker({
    handler: async (message) => (numberOf(message) === 2 ? retry(new Error('not yet')) : ack()),
  });
  const kinds = await kindsOf(
    made,
    [1, 2, 3].map((number) => deliver(number)),
  );
  assert.deepEqual(kinds, ['ack handled', 'retry Error', 'retry TOO_LARGE_TO_HOLD']);
  assert.deepEqual([state().last, state().attempts, runs.length], [1, 1, 2]);
});

test('failures of a number that has got through are not those of the number behind it', async () => {
  const { clock, worker, state } = bench({ retry: { maxAttempts: 3 } });
  const failures = new Map([
    [1, 2],
    [2, 2],
  ]);
  const { deliver, sweep } = worker({
    handler: async (message) => {
      const left = failures.get(numberOf(message)) ?? 0;
      failures.set(numberOf(message), left - 1);
      return left > 0 ? retry(new Error('not yet')) : ack();
    },
  });
  for (const number of [1, 2]) await deliver(number);
  for (let round = 0; round < 6; round += 1) {
    await clock.advance(10_000);
    await sweep();
  }
  assert.deepEqual([state().last, state().blocked, state().attempts], [2, null, 0], 'four failures of two');
});

test('a held number whose handler ignores its signal keeps its lease, and what was done before it stays done', async () => {
  const made = bench();
  const { clock, worker, state, heldNumbers } = made;
  const { deliver } = worker({
    handler: async (message) => {
      if (numberOf(message) === 3) await sleep(clock, 50_000);
      return ack();
    },
  });
  for (const number of [2, 3, 4]) await deliver(number);
  const first = deliver(1);
  await clock.advance(LEASE_MS + 500);
  const beside = deliver(6);
  assert.equal(kindOf(await clock.until(first)), 'ack handled', 'its own work is done');
  assert.equal(kindOf(await clock.until(beside)), 'ack held', 'and keeps back no other');
  assert.deepEqual([state().last, heldNumbers()], [2, [3, 4, 6]]);
  assert.equal(state().attempts, 0, 'a takeover counts it');
  await worker().sweep();
  assert.deepEqual([state().last, heldNumbers()], [4, [6]]);
});

test('a pause that is not a number, or is infinite, keeps no failure from being stored', async () => {
  for (const after of ['soon', Number.NaN, Infinity, -1] as never[]) {
    const { worker, state, heldNumbers } = bench();
    const { deliver } = worker({ handler: async () => retry(new Error('not yet'), after) });
    assert.equal(kindOf(await deliver(1)), 'ack held');
    assert.deepEqual([state().attempts, heldNumbers()], [1, [1]]);
    assert.ok(Number.isSafeInteger(state().nextTryAt), `${state().nextTryAt}`);
  }
});

test('a delivery that is aborted aborts its handler, and no further message starts in its time', async () => {
  const { clock, store, runs, worker, state } = bench();
  for (const number of [2, 3]) await worker().deliver(number);
  const client = new AbortController();
  const handler: Handler = async (message, { signal }) => {
    runs.push(`${numberOf(message)}`);
    await sleep(clock, 5_000, signal);
    return signal.aborted ? retry(signal.reason) : ack();
  };
  const chain = compose(handler, [orderedDelivery(store, { clock }).middleware]);
  const first = chain(messageOf(1), { ...contextFor(clock, 60_000, CONSUMER), signal: client.signal });
  await clock.advance(1_000);
  client.abort();
  assert.equal((await clock.until(first)).kind, 'retry');
  await clock.advance(0);
  assert.deepEqual([runs, state().last, state().attempts], [['1'], 0, 0], 'and it is no attempt');
  assert.ok(clock.monotonic() < 2_000);
});

test('a delivery whose time is over while it waits does not run, and its stream goes on without a pause', async () => {
  const made = bench();
  const { clock, worker, runs, state } = made;
  const { deliver } = worker({
    handler: async () => {
      await sleep(clock, 2_000);
      return ack();
    },
  });
  const outcomes = [deliver(1), deliver(2, { limitMs: 1_500 }), deliver(3)];
  assert.deepEqual(await kindsOf(made, outcomes), ['ack handled', 'retry LEASE_LOST', 'ack held']);
  assert.deepEqual([runs.length, state().last, state().attempts], [1, 1, 0]);
  assert.equal(kindOf(await clock.until(deliver(2))), 'ack handled');
  assert.equal(state().last, 3);
});

test('a stream that is busy for longer than a lease stays with its process: each batch renews the lease', async () => {
  const made = bench();
  const { clock, worker, runs, state } = made;
  const { deliver } = worker({
    handler: async () => {
      await sleep(clock, 3_000);
      return ack();
    },
  });
  const other = worker();
  const outcomes = Array.from({ length: 12 }, (_, index) => deliver(index + 1));
  for (let second = 0; second < 40; second += 4) {
    await clock.advance(4_000);
    if (state().last < 12) assert.equal((await other.sweep()).done, 0);
  }
  await kindsOf(made, outcomes);
  assert.ok(clock.monotonic() > 3 * LEASE_MS);
  assert.deepEqual([runs.length, state().last], [12, 12]);
});

test('a dead letter in the middle of a batch whose lease is lost is left to the process that has the stream', async () => {
  const published: number[] = [];
  const made = bench({
    onPoison: 'skip',
    deadLetters: (next) => async (message, context) => {
      const outcome = await next(message, context);
      if (outcome.kind !== 'deadLetter') return outcome;
      published.push(numberOf(message));
      return { ...outcome, published: true };
    },
  });
  const { clock, worker, state } = made;
  const slow = worker({
    handler: async (message) => {
      if (numberOf(message) === 1) return ack();
      await sleep(clock, LEASE_MS + 500);
      return deadLetter(new Error('never'));
    },
  });
  const outcomes = [1, 2].map((number) => slow.deliver(number));
  await clock.advance(LEASE_MS + 200);
  await worker().sweep();
  assert.match((await kindsOf(made, outcomes))[1] ?? '', /^retry|^ack held/);
  assert.deepEqual(published, []);
  assert.ok(state().last >= 1);
  assert.deepEqual([state().skipped, state().blocked], [[], null]);
});

test('a store that is down refuses all that waits, and none of it is lost or repeated', async () => {
  const made = bench();
  const { clock, worker, runs, state } = made;
  let isDown = true;
  const failing = (store: Store): Store => ({
    ...store,
    commit: (...args) => (isDown ? Promise.reject(storeUnavailable('down')) : store.commit(...args)),
  });
  const { deliver } = worker({ wrap: failing });
  const kinds = await kindsOf(
    made,
    [1, 2, 4].map((number) => deliver(number)),
  );
  assert.deepEqual(kinds, Array(3).fill('retry STORE_UNAVAILABLE'));
  isDown = false;
  const again = await kindsOf(
    made,
    [1, 2, 4].map((number) => deliver(number)),
  );
  assert.deepEqual(again, ['ack handled', 'ack handled', 'ack held']);
  assert.deepEqual([runs.length, state().last, clock.monotonic() <= 10_000], [2, 2, true]);
});

test('what has run does not run again because what is held cannot be read for a while', async () => {
  const made = bench();
  const { clock, worker, runs, state } = made;
  for (const number of [2, 4]) await worker().deliver(number);
  let isDown = false;
  const failing = (store: Store): Store => ({
    ...store,
    held: (...args) => (isDown ? Promise.reject(storeUnavailable('down')) : store.held(...args)),
  });
  const { deliver } = worker({
    wrap: failing,
    handler: async () => {
      isDown = true;
      clock.after(5_000, () => (isDown = false));
      return ack();
    },
  });
  assert.deepEqual(await kindsOf(made, [deliver(1)]), ['ack handled']);
  assert.deepEqual([runs, state().last, state().held], [['1:a', '2:a'], 2, 1]);
});

test('a process has one commit in flight in a stream, and as many as there are streams', async () => {
  const made = bench();
  const { clock, worker } = made;
  const under = new Map<string, number>();
  let [ofOne, ofAll] = [0, 0];
  const counting = (store: Store): Store => ({
    ...store,
    async commit(ref, ...rest) {
      under.set(ref.key, (under.get(ref.key) ?? 0) + 1);
      ofOne = Math.max(ofOne, under.get(ref.key) ?? 0);
      ofAll = Math.max(
        ofAll,
        [...under.values()].reduce((sum, one) => sum + one),
      );
      await sleep(clock, 20);
      under.set(ref.key, (under.get(ref.key) ?? 0) - 1);
      return store.commit(ref, ...rest);
    },
  });
  const { deliver } = worker({ wrap: counting });
  const keys = Array.from({ length: 30 }, (_, index) => `k${index}`);
  const outcomes = keys.flatMap((key) => [3, 1, 2, 7].map((number) => deliver(number, { key })));
  await kindsOf(made, outcomes);
  assert.deepEqual([ofOne, ofAll], [1, 30]);
});

test('a wake-up that is refused later costs nothing but time', async () => {
  const made = bench({
    wake: () => sleep(made.clock, 500).then(() => Promise.reject(new Error('no queue'))),
  });
  const { deliver } = made.worker({ handler: async () => retry(new Error('not yet')) });
  assert.deepEqual(await kindsOf(made, [deliver(1)]), ['ack held']);
  assert.equal(made.state().attempts, 1);
});

test('a stream whose document is deleted begins again, and nothing is answered from memory', async () => {
  const { clock, worker, runs, store } = bench();
  const other = bench();
  let current: Store = store;
  const deletable = (): Store => ({
    maxHeldBytes: store.maxHeldBytes,
    read: (...args) => current.read(...args),
    held: (...args) => current.held(...args),
    commit: (...args) => current.commit(...args),
    transact: (...args) => current.transact(...args),
    list: (...args) => current.list(...args),
    count: (...args) => current.count(...args),
    countHeld: (...args) => current.countHeld(...args),
  });
  const { deliver } = worker({
    wrap: deletable,
    handler: async (message) => {
      if (message.data.toString() === 'slow') await sleep(clock, 3_000);
      return ack();
    },
  });
  for (const number of [1, 2, 3]) await deliver(number);
  const running = deliver(4, { content: 'slow' });
  await clock.advance(500);
  current = other.store;
  assert.equal(kindOf(await clock.until(running)), 'retry LEASE_LOST', 'no document shows it as done');
  assert.equal(kindOf(await deliver(5)), 'ack held', 'not run as the next one');
  assert.equal(kindOf(await deliver(3)), 'ack held', 'not stale');
  const state = () => other.store.stateOf(REF);
  assert.deepEqual([state()?.last, state()?.gapAt, state()?.held], [0, 0, 2], 'a gap that is seen');
  runs.length = 0;
  for (const number of [4, 1, 2]) await deliver(number);
  assert.deepEqual(runs, ['1:a', '2:a', '3:a', '4:a', '5:a']);
});

test('a machine that is suspended for a lease while a number runs starts the next one under a new lease alone', async () => {
  for (const [suspendedMs, leases] of [
    [LEASE_MS - 1, 1],
    [LEASE_MS, 2],
  ] as const) {
    const made = bench();
    const { clock, worker, runs, contexts, state } = made;
    const { deliver } = worker({
      handler: async (message) => {
        // The monotonic clock, by which the batch has its time, stands still meanwhile.
        if (numberOf(message) === 1) clock.suspend(suspendedMs);
        return ack();
      },
    });
    const outcomes = [1, 2].map((number) => deliver(number));
    assert.deepEqual(await kindsOf(made, outcomes), ['ack handled', 'ack handled']);
    assert.deepEqual([runs, state().last, clock.monotonic()], [['1:a', '2:a'], 2, 0]);
    assert.equal(new Set(contexts.map(({ fencingToken }) => fencingToken)).size, leases, `${suspendedMs} ms`);
  }
});
