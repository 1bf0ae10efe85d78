/**
 * The rules about processes: several of them at one stream, one that dies, waits for a silent store, ends or is frozen
 * (P10, P11, P16 to P18).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { storeUnavailable } from '../../../shared/src/errors.ts';
import { compose, type Handler, type Middleware } from '../../../shared/src/handler.ts';
import { ack, type Outcome } from '../../../shared/src/outcome.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import { bench, type Bench, CONSUMER, kindOf, LEASE_MS, messageOf, type Worker } from './bench.ts';
import type { Store } from './faulty-store.ts';
import { lockingStore } from './locking-store.ts';
import { contextFor } from './schedule.ts';

const never = (): Promise<never> => new Promise(() => undefined);

test('P10: of two visits of one process one takes the stream', async () => {
  const { clock, worker, runs } = bench();
  void worker({ faults: { 'commit 1': { kind: 'crash', when: 'after' } } }).deliver(1);
  await clock.advance(1_000);
  const { deliver, sweep } = worker();
  await deliver(1);
  await clock.advance(LEASE_MS);
  const [first, second] = await Promise.all([sweep(), sweep()]);
  assert.deepEqual([first.done + second.done, runs], [1, ['1:a']]);
});

/** Messages of one stream over many processes, each with so many outstanding; how each delivery ended. */
async function hot(processes: number, outstanding: number, count: number) {
  const made = bench();
  const { clock, worker, runs, state } = made;
  const locking = lockingStore(made.store);
  const workers = Array.from({ length: processes }, () => worker({ callMs: 15, wrap: () => locking }));
  const outcomes: Outcome[] = [];
  const waitedMs: number[] = [];
  let next = 1;
  const deliverAll = async ({ deliver }: Worker): Promise<void> => {
    while (next <= count) {
      const number = next;
      next += 1;
      const from = clock.monotonic();
      for (;;) {
        const outcome = await deliver(number);
        outcomes.push(outcome);
        if (outcome.kind === 'ack') break;
      }
      waitedMs.push(clock.monotonic() - from);
    }
  };
  const slots = workers.flatMap((one) => Array.from({ length: outstanding }, () => deliverAll(one)));
  await clock.until(Promise.all(slots));
  const tookMs = clock.monotonic();
  await clock.advance(LEASE_MS);
  await worker().sweep();
  return {
    runs,
    state: state(),
    outcomes,
    tookMs,
    waitedMs: waitedMs.toSorted((left, right) => left - right),
  };
}

for (const [processes, outstanding] of [
  [20, 1],
  [10, 8],
  [50, 1],
] as const) {
  test(`P11: ${processes} processes with ${outstanding} outstanding work on one stream, and none is starved`, async (context) => {
    const count = 400;
    const { runs, state, outcomes, tookMs, waitedMs } = await hot(processes, outstanding, count);
    assert.deepEqual(
      runs.map((run) => Number(run.split(':')[0])),
      Array.from({ length: count }, (_, index) => index + 1),
      'each once, in order',
    );
    assert.equal(outcomes.filter(({ kind }) => kind !== 'ack').length, 0, 'no delivery is refused');
    assert.deepEqual([state.last, state.held, state.lease], [count, 0, null]);
    const p99 = waitedMs[Math.floor(waitedMs.length * 0.99)] ?? 0;
    context.diagnostic(
      `${Math.round((count / tookMs) * 1_000)} messages a second, p99 ${Math.round(p99)} ms`,
    );
    assert.ok(p99 < 3_000, `p99 ${p99} ms`);
  });
}

/** A handler that kills its process whenever it starts the number. */
const killing =
  (number: number): Handler =>
  async (message) =>
    message.attributes.sequence === String(number) ? never() : ack();

const published: Middleware = (next) => async (message, context) => {
  const outcome = await next(message, context);
  return outcome.kind === 'deadLetter' ? { ...outcome, published: true } : outcome;
};

/** Redeliveries of a killer that come after lease and sweep, as with a long ack deadline. */
async function redeliverKiller(made: Bench, rounds: number, content?: string): Promise<Outcome | undefined> {
  const { clock, worker } = made;
  const sent = content === undefined ? {} : { content };
  let last: Outcome | undefined;
  for (let round = 0; round < rounds; round += 1) {
    const one = worker({ handler: killing(1) });
    void one.deliver(1, sent).then((outcome) => (last = outcome));
    await clock.advance(LEASE_MS + 1_000);
    const two = worker({ handler: killing(1) });
    void two.sweep();
    await clock.advance(LEASE_MS + 1_000);
    void worker({ handler: killing(1) }).sweep();
    await clock.advance(70_000);
  }
  return last;
}

test('P16: a number that kills its process is started as often as attempts allow, and then blocks its stream', async () => {
  const made = bench({ retry: { maxAttempts: 3 } });
  await redeliverKiller(made, 6);
  const { runs, state } = made;
  assert.deepEqual([runs.length, state().blocked?.code, state().attempts], [3, 'ATTEMPTS_EXHAUSTED', 3]);
});

test('P16: with `skip` it is dead-lettered after as many starts, and what waits behind it runs', async () => {
  const made = bench({ retry: { maxAttempts: 3 }, onPoison: 'skip', deadLetters: published });
  await made.worker().deliver(2);
  await redeliverKiller(made, 6);
  const { runs, state } = made;
  assert.deepEqual(runs, ['1:a', '1:a', '1:a', '2:a']);
  assert.deepEqual([state().last, state().skipped], [2, [{ from: 1, to: 1 }]]);
});

test('P16: one that cannot be held is judged before each start', async () => {
  const made = bench({ retry: { maxAttempts: 3 }, maxHeldBytes: 1_000 });
  await redeliverKiller(made, 8, 'x'.repeat(2_000));
  const { runs, state } = made;
  assert.deepEqual([runs.length, state().blocked?.code], [3, 'ATTEMPTS_EXHAUSTED']);
});

test('P16: a delivery does not start what has killed its process: it is held, and a wake-up is requested', async () => {
  const { clock, worker, runs, state, wakes } = bench();
  void worker({ handler: killing(1) }).deliver(1);
  await clock.advance(LEASE_MS + 1_000);
  await worker().sweep();
  wakes.length = 0;
  assert.equal(kindOf(await worker().deliver(1)), 'ack held');
  assert.deepEqual([runs.length, wakes.length, state().readyAt], [1, 1, clock.now()]);
  await worker().sweep();
  assert.deepEqual([runs.length, state().last, state().attempts], [2, 1, 0]);
});

test('P16: all numbers of a batch whose process died are suspects: a killer among them has its attempts and no more', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench({ retry: { maxAttempts: 3 } });
  const numbers = Array.from({ length: 20 }, (_, index) => index + 1);
  for (let round = 0; round < 8; round += 1) {
    // It dies with its batch: nothing of it is counted as done.
    const { deliver } = worker({
      handler: killing(7),
      faults: { 'commit 2': { kind: 'crash', when: 'before' } },
    });
    // Redelivered after lease and sweep, all together, as long as they are not acknowledged.
    for (const number of numbers) void deliver(number);
    await clock.advance(LEASE_MS + 1_000);
    for (let sweeps = 0; sweeps < 3; sweeps += 1) {
      void worker({ handler: killing(7) }).sweep();
      await clock.advance(LEASE_MS + 1_000);
    }
  }
  const starts = (number: number): number => runs.filter((run) => run === `${number}:a`).length;
  assert.equal(starts(7), 3);
  assert.deepEqual([state().last, state().blocked?.code], [6, 'ATTEMPTS_EXHAUSTED']);
  for (const number of [1, 2, 3, 4, 5, 6]) assert.equal(starts(number), 2, 'in the batch, and alone');
  assert.equal(heldNumbers().includes(7), true);
});

/** A store that stops answering until the test lets it answer again. */
function silenced(): Readonly<{ wrap(store: Store): Store; silence(): void; heal(): void }> {
  let isSilent = false;
  const guarded =
    <Args extends readonly unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
    (...args: Args): Promise<Result> =>
      isSilent ? never() : call(...args);
  return {
    wrap: (store) => ({
      ...store,
      read: guarded(store.read),
      held: guarded(store.held),
      commit: guarded(store.commit),
    }),
    silence: () => void (isSilent = true),
    heal: () => void (isSilent = false),
  };
}

test('P17: while the store is silent each delivery is answered with its own time', async () => {
  const { clock, worker, runs } = bench();
  const { wrap, silence } = silenced();
  const { deliver } = worker({ wrap });
  silence();
  const answers = [deliver(1, { limitMs: 5_000 }), deliver(2, { limitMs: 20_000 })];
  const at: number[] = [];
  const kinds: string[] = [];
  for (const one of answers) {
    void one.then((outcome) => {
      at.push(clock.monotonic());
      kinds.push(kindOf(outcome));
    });
  }
  await clock.advance(30_000);
  assert.deepEqual([at, kinds, runs], [[5_000, 20_000], ['retry LEASE_LOST', 'retry LEASE_LOST'], []]);
});

test('P17: the retries of one cycle share one budget of ten seconds', async () => {
  const { clock, worker } = bench();
  let calls = 0;
  const down = (store: Store): Store => ({
    ...store,
    read: () => {
      calls += 1;
      return Promise.reject(storeUnavailable('down'));
    },
  });
  const { deliver } = worker({ wrap: down });
  assert.equal(kindOf(await clock.until(deliver(1))), 'retry STORE_UNAVAILABLE');
  assert.ok(clock.monotonic() <= 10_000 && clock.monotonic() > 5_000, `${clock.monotonic()} ms`);
  assert.ok(calls <= 21, `${calls} calls`);
});

test('P17: a stream goes on by itself once the store answers again', async () => {
  const { clock, worker, runs, state } = bench();
  const { wrap, silence, heal } = silenced();
  const slow: Handler = async () => {
    await sleep(clock, 500);
    return ack();
  };
  const { deliver } = worker({ wrap, handler: slow });
  const first = deliver(1, { limitMs: 10_000 });
  await clock.advance(100);
  silence();
  assert.equal(kindOf(await clock.until(first)), 'retry LEASE_LOST');
  await clock.advance(60_000);
  heal();
  // Its lease has expired: another process takes over.
  const other = worker();
  await other.sweep();
  assert.equal(kindOf(await other.deliver(1)), 'ack held');
  await other.sweep();
  assert.deepEqual([runs, state().last], [['1:a', '1:a'], 1]);
});

test('P18: a process that ends starts nothing, counts what has run, releases its stream and refuses the rest', async () => {
  const { clock, worker, runs, state } = bench();
  const { deliver, streams } = worker({
    handler: async () => {
      await sleep(clock, 3_000);
      return ack();
    },
  });
  const [first, second, third] = [deliver(1), deliver(2), deliver(3)];
  await clock.advance(500);
  const late = deliver(5);
  const stopped = streams.stop();
  const from = clock.monotonic();
  await clock.until(stopped);
  assert.ok(clock.monotonic() - from <= 8_000);
  assert.equal(kindOf(await first), 'ack handled');
  for (const one of [second, third, late]) assert.equal(kindOf(await one), 'retry DELIVERY_STOPPED');
  assert.deepEqual([runs, state().last, state().lease], [['1:a'], 1, null]);
  assert.equal(kindOf(await deliver(2)), 'retry DELIVERY_STOPPED');
  assert.equal(kindOf(await worker().deliver(2)), 'ack handled');
});

test('P18: a handler that does not end keeps a process for eight seconds at most', async () => {
  const { clock, worker } = bench();
  const { deliver, streams } = worker({ handler: never });
  void deliver(1);
  await clock.advance(500);
  const from = clock.monotonic();
  await clock.until(streams.stop());
  assert.equal(clock.monotonic() - from, 8_000);
});

test('P18: wake-ups are awaited before the last answer, but not for long', async () => {
  for (const [takesMs, waitsMs] of [[1_000, 1_000] as const, [60_000, 3_000] as const]) {
    const wake = (): Promise<void> => sleep(made.clock, takesMs);
    const made = bench({ wake });
    const { deliver } = made.worker({ handler: async () => ({ kind: 'retry', error: new Error('once') }) });
    assert.equal(kindOf(await made.clock.until(deliver(1))), 'ack held');
    assert.equal(made.clock.monotonic(), waitsMs);
  }
});

test('P18: a process that ends has given every answer first, also one that waits for a wake-up', async () => {
  const wake = (): Promise<void> => sleep(made.clock, 1_000);
  const made = bench({ wake });
  const { clock, worker } = made;
  const { deliver, streams } = worker({
    handler: async () => ({ kind: 'retry', error: new Error('once') }),
  });
  const answer = deliver(1);
  await clock.advance(500);
  await clock.until(streams.stop());
  const given = await Promise.race([answer, new Promise<undefined>((end) => setImmediate(end, undefined))]);
  assert.equal(given && kindOf(given), 'ack held');
});

test('an instance that is frozen between two requests does not rely on what has changed meanwhile', async () => {
  const { clock, worker, store, runs, state } = bench();
  // The monotonic clock of a suspended instance may stop; the wall clock does not.
  let frozenMs = 0;
  const own = { ...clock, monotonic: () => clock.monotonic() - frozenMs };
  const { middleware } = orderedDelivery(store, { clock: own, lease: '12s' });
  const chain = compose(
    async (message) => {
      runs.push(`${message.attributes.sequence}`);
      return ack();
    },
    [middleware],
  );
  const deliver = (number: number) =>
    chain(messageOf(number), { ...contextFor(clock, 60_000, CONSUMER), deadline: own.monotonic() + 60_000 });
  await deliver(1);
  for (const number of [2, 3]) await worker().deliver(number);
  await clock.advance(600_000);
  frozenMs = 600_000;
  assert.equal(kindOf(await deliver(2)), 'ack stale');
  assert.equal(kindOf(await deliver(6)), 'ack held');
  assert.equal(state().waitingSince, clock.now(), 'the store’s time, not that before the freeze');
  assert.equal(kindOf(await deliver(4)), 'ack handled');
  assert.deepEqual([runs.length, state().last, state().lease], [4, 4, null]);
});

test('the age of a gap that a frozen instance opens from memory is judged by the store’s time', async () => {
  const { clock, store, state } = bench();
  let frozenMs = 0;
  const own = { ...clock, monotonic: () => clock.monotonic() - frozenMs };
  const chain = compose(async () => ack(), [orderedDelivery(store, { clock: own }).middleware]);
  const deliver = (number: number) =>
    chain(messageOf(number), { ...contextFor(clock, 60_000, CONSUMER), deadline: own.monotonic() + 60_000 });
  await deliver(1);
  await clock.advance(600_000);
  frozenMs = 600_000;
  assert.equal(kindOf(await deliver(3)), 'ack held');
  assert.deepEqual([state().waitingSince, state().gapAt], [clock.now(), 1]);
});

test('with a single attempt a number that kills its process costs the numbers before it nothing', async () => {
  const { clock, worker, state, runs } = bench({ retry: { maxAttempts: 1 } });
  let isDead = false;
  const dying = worker({
    handler: async (message) => {
      isDead ||= message.attributes.sequence === '2';
      return isDead ? never() : ack();
    },
    wrap: (store) => ({ ...store, commit: (...args) => (isDead ? never() : store.commit(...args)) }),
  });
  for (const number of [1, 2, 3]) void dying.deliver(number);
  await clock.advance(2 * LEASE_MS);
  const { sweep, deliver } = worker();
  await deliver(2);
  await sweep();
  assert.deepEqual([state().last, state().blocked?.code], [1, 'ATTEMPTS_EXHAUSTED']);
  assert.deepEqual(runs, ['1:a', '2:a']);
});

test('with two attempts no two numbers run at once that may have ended the process before', async () => {
  const { clock, worker } = bench({ retry: { maxAttempts: 2 } });
  const keys = ['a', 'b', 'c'];
  for (const key of keys) {
    void worker({ faults: { 'commit 1': { kind: 'crash', when: 'after' } } }).deliver(1, { key });
  }
  await clock.advance(2 * LEASE_MS);
  let [running, most, ran] = [0, 0, 0];
  const { deliver, sweep } = worker({
    handler: async () => {
      running += 1;
      ran += 1;
      most = Math.max(most, running);
      await sleep(clock, 500);
      running -= 1;
      return ack();
    },
  });
  for (const key of keys) await deliver(1, { key });
  await clock.until(sweep());
  assert.deepEqual([ran, most], [3, 1]);
});
