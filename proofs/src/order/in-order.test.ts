import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { ConfigError, TransientError } from '../../../shared/src/errors.ts';
import type { Handler } from '../../../shared/src/handler.ts';
import { ack, type Outcome, retry } from '../../../shared/src/outcome.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import { freshStream } from '../../../shared/src/order/stream-state.ts';
import type { StreamOptions } from '../../../shared/src/order/options.ts';
import { bench, kindOf, LEASE_MS, messageOf, REF, type Worker } from './bench.ts';

async function deliverAll({ deliver }: Worker, numbers: readonly number[]): Promise<string[]> {
  const kinds: string[] = [];
  for (const number of numbers) kinds.push(kindOf(await deliver(number)));
  return kinds;
}

/** Fails `times` times for one number, with what `outcome` makes. */
const failing =
  (number: number, times: number, outcome: () => Outcome): Handler =>
  async (message) => {
    if (message.attributes.sequence !== String(number) || times <= 0) return ack();
    times -= 1;
    return outcome();
  };

test('a message without a sequence passes through untouched', async () => {
  const { store, clock } = bench();
  const chain = orderedDelivery(store, { clock }).middleware(async () => ack('duplicate'));
  const outcome = await chain({ ...messageOf(1), attributes: {} }, {} as never);
  assert.deepEqual(outcome, ack('duplicate'));
});

test('numbers run in their order whatever the order they come in, and duplicates are stale', async () => {
  const { worker, runs, state, heldNumbers } = bench();
  const kinds = await deliverAll(worker(), [3, 5, 1, 2, 2, 4, 1, 7]);
  assert.deepEqual(
    runs.map((run) => run[0]),
    ['1', '2', '3', '4', '5'],
  );
  const [held, handled, stale] = ['ack held', 'ack handled', 'ack stale'];
  assert.deepEqual(kinds, [held, held, handled, handled, stale, handled, stale, held]);
  assert.deepEqual([state().last, state().lease, heldNumbers()], [5, null, [7]]);
});

test('B18: redelivered numbers that are done never run again', async () => {
  const { worker, runs } = bench();
  await deliverAll(worker(), [1, 2, 3]);
  assert.deepEqual(await deliverAll(worker(), [1, 2, 3]), ['ack stale', 'ack stale', 'ack stale']);
  assert.equal(runs.length, 3);
});

test('a number that fails is tried again after 1, 2, 4, … seconds up to a minute', async () => {
  const { clock, worker, state, wakes } = bench();
  const { deliver, sweep } = worker({ handler: failing(1, 9, () => retry(new Error('down'))) });
  await deliver(1);
  const pauses: number[] = [];
  for (let round = 0; round < 9; round += 1) {
    const pause = state().nextTryAt - clock.now();
    pauses.push(pause / 1_000);
    await clock.advance(pause - 1);
    assert.equal((await sweep()).due, 0);
    await clock.advance(1);
    await sweep();
  }
  assert.deepEqual(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
  assert.deepEqual([state().last, wakes.length], [1, 9]);
});

test('a handler that asks for a longer pause gets it', async () => {
  const { clock, worker, state } = bench();
  const busy = new TransientError('BUSY', 'busy', { retryAfterMs: 30_000 });
  await worker({ handler: failing(1, 1, () => retry(busy)) }).deliver(1);
  assert.equal(state().nextTryAt, clock.now() + 30_000);
  await worker({ handler: failing(1, 1, () => retry(busy, '2m')) }).deliver(1, { key: 'j' });
  assert.equal(state('j').nextTryAt, clock.now() + 120_000);
});

test('a number that failed is held, and does not depend on redeliveries', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  const { deliver, sweep } = worker({ handler: failing(1, 1, () => retry(new Error('once'))) });
  assert.equal(kindOf(await deliver(1)), 'ack held');
  assert.deepEqual([heldNumbers(), state().readyAt], [[1], clock.now() + 1_000]);
  await clock.advance(1_000);
  assert.equal((await sweep()).drained, 1);
  assert.deepEqual([runs.length, state().last, heldNumbers()], [2, 1, []]);
});

test('a number that failed is a retry when holding it is not confirmed', async () => {
  const { worker, runs } = bench();
  const lost = { kind: 'refused' } as const;
  const handler = failing(1, 1, () => retry(new Error('once')));
  const faults = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`commit ${index + 2}`, lost]));
  const { clock, worker: another } = bench();
  const failed = another({ handler, faults }).deliver(1);
  assert.equal(kindOf(await clock.until(failed)), 'retry STORE_UNAVAILABLE');
  assert.equal(kindOf(await worker().deliver(1)), 'ack handled');
  assert.equal(runs.length, 1);
});

test('a message too large to be held is a retry: ahead of its turn, and after a number that failed', async () => {
  const { worker, state, heldNumbers } = bench({ maxHeldBytes: 1_000 });
  const large = { content: 'x'.repeat(2_000) };
  const { deliver } = worker({ handler: failing(1, 1, () => retry(new Error('once'))) });
  assert.equal(kindOf(await deliver(2, large)), 'retry TOO_LARGE_TO_HOLD');
  assert.equal(kindOf(await deliver(1, large)), 'retry Error');
  assert.deepEqual([heldNumbers(), state().lease, state().readyAt, state().attempts], [[], null, null, 1]);
  assert.equal(kindOf(await deliver(1, large)), 'ack handled');
  assert.equal(kindOf(await deliver(2, large)), 'ack handled');
});

test('failures of held numbers never cost the delivery that drained them', async () => {
  const { worker, state, runs } = bench();
  const { deliver } = worker({ handler: failing(3, 1, () => retry(new Error('once'))) });
  await deliver(2);
  await deliver(3);
  assert.equal(kindOf(await deliver(1)), 'ack handled');
  assert.deepEqual([runs.length, state().last, state().attempts], [3, 2, 1]);
});

test('a lost reply inside a drain neither repeats a number nor loses the lease', async () => {
  for (const fault of ['reply lost', 'repeated'] as const) {
    const { clock, worker, runs, state, heldNumbers } = bench();
    const faults = {
      'commit 2': { kind: fault },
      'commit 4': { kind: fault },
      'transact 8': { kind: fault },
    };
    const one = worker({ faults });
    for (const number of [7, 6, 5, 4, 3, 2]) await one.deliver(number);
    await clock.until(one.deliver(1));
    assert.deepEqual([runs.length, state().last, state().lease, heldNumbers()], [7, 7, null, []], fault);
  }
});

test('a lost reply to the start of a batch is recognised', async () => {
  const { worker, runs, state } = bench();
  const one = worker({ faults: { 'commit 1': { kind: 'repeated' } } });
  assert.equal(kindOf(await one.deliver(1)), 'ack handled');
  assert.deepEqual([runs.length, state().last], [1, 1]);
});

test('a stale delivery continues a stream that was left with work that is due', async () => {
  const { clock, worker, state, store } = bench();
  await deliverAll(worker(), [1, 3]);
  const ref = REF;
  const { version } = await store.read(ref);
  const patch = {
    commit: 'left',
    last: 2,
    readyAt: clock.now(),
    recentHashes: [...state().recentHashes, ''],
  };
  await store.commit(ref, { version, state: freshStream(1) }, { patch });
  assert.equal(kindOf(await worker().deliver(1)), 'ack stale');
  assert.deepEqual([state().last, state().readyAt], [3, null]);
});

test('a sweep leaves a live lease alone even when its stream looks due', async () => {
  const { clock, worker, store } = bench();
  const ref = REF;
  const lease = { owner: 'another', lengthMs: LEASE_MS, to: 1 };
  await store.commit(
    ref,
    { version: undefined, state: freshStream(1) },
    { patch: { commit: 'test', lease, readyAt: clock.now() - 1 } },
  );
  assert.deepEqual(await worker().sweep(), {
    due: 1,
    done: 0,
    isWhole: true,
    drained: 0,
    failed: 0,
    repaired: 0,
    skipped: 0,
  });
});

test('a drain ends after half of the delivery’s time and leaves the rest to a wake-up', async () => {
  const { clock, worker, state, wakes } = bench();
  const slow: Handler = async () => {
    await sleep(clock, 7_000);
    return ack();
  };
  const { deliver, sweep } = worker({ handler: slow });
  for (let number = 10; number > 1; number -= 1) await deliver(number);
  assert.equal(kindOf(await clock.until(deliver(1))), 'ack handled');
  assert.ok(state().last >= 5 && state().last < 10, `at ${state().last}`);
  assert.deepEqual([state().lease, wakes.length], [null, 1]);
  await clock.until(sweep());
  await clock.until(sweep());
  assert.deepEqual([state().last, state().readyAt], [10, null]);
});

test('every lease has a larger fencing token, and what was held runs under the source it came through', async () => {
  const { worker, contexts, clock } = bench();
  await deliverAll(worker(), [1, 3, 2]);
  const tokens = contexts.map(({ fencingToken }) => BigInt(fencingToken ?? 0));
  assert.ok(tokens[0]! < tokens[1]! && tokens[1] === tokens[2], String(tokens));
  assert.ok(Math.abs(Number(tokens[0]) / 1_000 - clock.now()) < 1_000, 'microseconds');
  assert.deepEqual(
    contexts.map(({ source }) => source),
    ['sub', 'sub', 'sub'],
  );
});

test('a handler that ignores its signal is abandoned, and nothing is written for it', async () => {
  const { clock, worker, state, contexts } = bench();
  const deaf = worker({
    handler: async () => {
      await sleep(clock, 50_000);
      return ack();
    },
  });
  const outcome = await clock.until(deaf.deliver(1));
  assert.equal(kindOf(outcome), 'retry LEASE_LOST');
  assert.equal(contexts[0]?.signal.aborted, true);
  assert.deepEqual([state().last, state().run?.number], [0, 1]);
});

test('an outcome with messages that no stage inside publishes loses nothing, and counts as no failure of the message', async () => {
  const { worker, state } = bench();
  const outgoing = { topic: 't', data: Buffer.from('x'), attributes: {} };
  const { deliver } = worker({ handler: async () => ack('handled', [outgoing]) });
  assert.equal(kindOf(await deliver(1)), 'ack held');
  assert.deepEqual([state().last, state().attempts], [0, 0]);
  assert.ok(state().nextTryAt > 0, 'it is tried again after a pause');
});

test('other content under a number that is done, or held, is a SEQUENCE_CONFLICT', async () => {
  const { worker } = bench();
  const { deliver } = worker();
  await deliver(1);
  await deliver(3);
  for (const number of [1, 3]) {
    const other = await deliver(number, { content: 'b' });
    assert.equal(kindOf(other), 'deadLetter SEQUENCE_CONFLICT');
  }
  const attribute = await deliver(1, { attributes: { type: 'cancelled' } });
  assert.equal(kindOf(attribute), 'deadLetter SEQUENCE_CONFLICT');
  const traced = { traceparent: '00-1', dedupId: 'another', googclient_traceparent: '00-2' };
  assert.equal(kindOf(await deliver(1, { attributes: traced })), 'ack stale');
});

test('the first epoch of a stream is kept, and another one is an EPOCH_MISMATCH', async () => {
  const { worker, state } = bench();
  const { deliver } = worker();
  const epoch = (sequenceEpoch: string) => ({ attributes: { sequenceEpoch } });
  await deliver(1);
  assert.equal(state().epoch, null);
  await deliver(3, epoch('first'));
  assert.equal(state().epoch, 'first');
  assert.equal(kindOf(await deliver(2, epoch('first'))), 'ack handled');
  for (const number of [1, 4, 9]) {
    assert.equal(kindOf(await deliver(number, epoch('second'))), 'deadLetter EPOCH_MISMATCH');
  }
  assert.equal(kindOf(await deliver(4)), 'ack handled');
  await deliver(1, { key: 'j', ...epoch('e') });
  assert.equal(state('j').epoch, 'e');
});

test('B15: a number that never comes is a visible gap, and what waits costs no further reads', async () => {
  const { clock, worker, state, heldNumbers, runs } = bench();
  await deliverAll(worker(), [1, 3, 4]);
  const since = clock.now();
  assert.deepEqual([state().waitingSince, state().gapAt, heldNumbers()], [since, 1, [3, 4]]);
  await clock.advance(30_000);
  const { deliver, sweep } = worker({
    faults: { 'held 1': { kind: 'refused' }, 'read 4': { kind: 'refused' } },
  });
  assert.deepEqual(await sweep(), {
    due: 0,
    done: 0,
    isWhole: true,
    drained: 0,
    failed: 0,
    repaired: 0,
    skipped: 0,
  });
  assert.equal(kindOf(await deliver(5)), 'ack held');
  assert.equal(state().waitingSince, since);
  await worker().deliver(2);
  assert.deepEqual(
    runs.map((run) => run[0]),
    ['1', '2', '3', '4', '5'],
  );
});

test('B15: a stream begins at 1 or at the configured number, never at the first one seen', async () => {
  const first = bench();
  assert.equal(kindOf(await first.worker().deliver(57)), 'ack held');
  assert.deepEqual(first.runs, []);
  const { worker, runs } = bench({ start: 57 });
  assert.deepEqual(await deliverAll(worker(), [58, 57, 56]), ['ack held', 'ack handled', 'ack stale']);
  assert.equal(runs.length, 2);
});

test('B15: a message inside a range that was skipped is a LATE_ARRIVAL', async () => {
  const { worker, store } = bench();
  const ref = REF;
  const skipped = [{ from: 2, to: 4 }];
  await store.commit(
    ref,
    { version: undefined, state: freshStream(1) },
    { patch: { commit: 'test', last: 4, skipped } },
  );
  const { deliver } = worker();
  assert.equal(kindOf(await deliver(3)), 'deadLetter LATE_ARRIVAL');
  assert.equal(kindOf(await deliver(5)), 'ack handled');
});

test('a number far beyond the last one is refused for good', async () => {
  const { worker } = bench({ maxAhead: 10 });
  assert.equal(kindOf(await worker().deliver(10)), 'ack held');
  assert.equal(kindOf(await worker().deliver(11)), 'deadLetter SEQUENCE_TOO_FAR_AHEAD');
});

test('B03: the ordering key stands for an absent sequenceKey, and nothing needs it otherwise', async () => {
  const { worker, state } = bench();
  await worker().deliver(1, { key: '', orderingKey: 'the message’s own' });
  assert.equal(state('the message’s own').last, 1);
  assert.equal(kindOf(await worker().deliver(1, { key: '' })), 'deadLetter INVALID_ATTRIBUTE');
});

test('B25: a message that was held reaches the handler byte for byte', async () => {
  const seen: Buffer[] = [];
  const { worker } = bench();
  const bytes = Buffer.from([0, 255, 0xfe, 0x80, 10]);
  const { deliver } = worker({
    handler: async (message) => {
      seen.push(message.data);
      return ack();
    },
  });
  await deliver(2, { content: bytes });
  await deliver(1);
  assert.deepEqual(seen[1], bytes);
});

test('a wake-up that throws costs nothing but time', async () => {
  const wake = (): never => {
    throw new Error('no queue');
  };
  const { worker, state } = bench({ wake });
  const { deliver } = worker({ handler: failing(1, 1, () => retry(new Error('once'))) });
  assert.equal(kindOf(await deliver(1)), 'ack held');
  assert.equal(state().attempts, 1);
});

test('invalid options are refused by name', () => {
  const { store, clock } = bench();
  const refused: StreamOptions[] = [
    { lease: '10ms' },
    { start: 0 },
    { maxAhead: 1.5 },
    { pageSize: 0 },
    { retry: { min: '2m' } },
    { lease: 'soon' as never },
  ];
  for (const option of refused) {
    const [name = ''] = Object.keys(option);
    const pattern = new RegExp(name === 'retry' ? 'retry.max' : name);
    assert.throws(
      () => orderedDelivery(store, { clock, ...option }),
      (error) => error instanceof ConfigError && pattern.test(error.message),
    );
  }
});
