/**
 * What sweeps, wake-ups and operators do with streams that real workers have left.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { codeOf, PermanentError, TransientError } from '../../../shared/src/errors.ts';
import type { Handler } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import { ack, deadLetter, retry } from '../../../shared/src/outcome.ts';
import { freshStream } from '../../../shared/src/order/stream-state.ts';
import { type Bench, bench, CONSUMER, LEASE_MS, messageOf, SOURCE } from './bench.ts';
import { patchOf } from '../../../shared/src/testing/stream-samples.ts';
import type { VisitContext } from '../../../shared/src/order/mailbox.ts';
import type { Woken } from '../../../shared/src/order/wake.ts';

const K = { consumer: CONSUMER, source: SOURCE, key: 'k' };
const nothing = { drained: 0, repaired: 0, skipped: 0 };
const failing: Handler = async () => retry(new TransientError('DOWN', 'not now'));
const bad: Handler = async () => deadLetter(new PermanentError('BAD', 'never'));

const contextOf = ({ clock }: Bench): VisitContext => ({
  consumer: CONSUMER,
  now: clock.now,
  deadline: clock.monotonic() + 60_000,
  signal: new AbortController().signal,
  log: silent,
});

/** A wake-up in a process of its own. */
function waking(bed: Bench, handler: Handler = async () => ack()): Promise<Woken> {
  const wake = bed.worker().streams.wake(async (message, context) => {
    bed.runs.push(`${message.attributes.sequence}:woken`);
    return handler(message, context);
  });
  return bed.clock.until(wake(K, contextOf(bed)));
}

async function dueStreams({ clock, store, worker }: Bench, count: number): Promise<void> {
  const { deliver } = worker({ handler: async () => Promise.reject(new Error('once')) });
  for (let index = 0; index < count; index += 1) await deliver(1, { key: `k${index}` });
  await clock.advance(60_000);
  assert.equal(await store.count(CONSUMER, 'due'), count);
}

test('one sweep handles more streams than one page has', async () => {
  const bed = bench();
  await dueStreams(bed, 230);
  assert.deepEqual(await bed.worker().sweep(), {
    ...nothing,
    isWhole: true,
    due: 230,
    done: 230,
    drained: 230,
    failed: 0,
  });
});

test('sweeps of several processes at the same time take each stream once', async () => {
  const bed = bench();
  await dueStreams(bed, 40);
  const handler: Handler = async () => {
    await sleep(bed.clock, 100);
    return ack();
  };
  const results = await bed.clock.until(Promise.all([1, 2, 3].map(() => bed.worker({ handler }).sweep())));
  const sum = (field: 'done' | 'drained'): number => results.reduce((all, one) => all + one[field], 0);
  assert.deepEqual([sum('done'), sum('drained')], [40, 40]);
});

test('P5: a stream whose process died with nothing held is released, and its next number runs', async () => {
  const bed = bench();
  const { clock, store, worker, state } = bed;
  const lease = { owner: 'dead', lengthMs: 1_000, to: 1 };
  const patch = patchOf({ lease, readyAt: clock.now() + 1_000 });
  await store.commit(K, { version: undefined, state: freshStream(1) }, { patch });
  await clock.advance(2_000);
  assert.deepEqual(await worker().sweep(), { ...nothing, isWhole: true, due: 1, done: 1, failed: 0 });
  assert.deepEqual([state().lease, state().readyAt, state().attempts], [null, null, 1]);
  // The redelivery is held, and a visit runs it: the number may be what killed its process.
  assert.equal((await worker().deliver(1)).kind, 'ack');
  await clock.advance(2_000);
  await worker().sweep();
  assert.equal(state().last, 1);
});

test('a message that failed runs when its wake-up comes, with all that waited for it', async () => {
  const bed = bench();
  await bed.worker({ handler: failing }).deliver(1);
  await bed.worker().deliver(2);
  const [asked] = bed.wakes;
  assert.equal(asked?.key, 'k');
  await bed.clock.advance((asked?.atMs ?? 0) - bed.clock.now());
  assert.deepEqual(await waking(bed), { ...nothing, kind: 'taken', drained: 2 });
  assert.deepEqual(bed.runs, ['1:a', '1:woken', '2:woken']);
});

test('one that fails again asks for the next wake-up, after a longer pause', async () => {
  const bed = bench();
  await bed.worker({ handler: failing }).deliver(1);
  await bed.clock.advance(1_000);
  await waking(bed, failing);
  assert.equal((bed.wakes.at(-1)?.atMs ?? 0) - bed.clock.now(), 2_000);
  assert.equal(bed.state().attempts, 2);
});

test('R9: a wake-up takes over from a process that died, and that counts as an attempt', async () => {
  const bed = bench();
  const dying = bed.worker({ faults: { 'commit 2': { kind: 'crash', when: 'before' } } });
  void dying.deliver(1).catch(() => undefined);
  await bed.clock.advance(0);
  await bed.worker().deliver(1);
  assert.deepEqual(await waking(bed), { ...nothing, kind: 'left' }, 'its lease is not over');
  await bed.clock.advance(LEASE_MS + 1);
  const seen: number[] = [];
  await waking(bed, async () => {
    seen.push(bed.state().attempts);
    return ack();
  });
  assert.deepEqual([bed.runs.at(-1), seen, bed.state().last], ['1:woken', [1], 1]);
});

test('inspect names the state that a worker leaves a stream in', async () => {
  const bed = bench();
  const { clock, worker } = bed;
  const { inspect, resume } = worker().streams;
  const statusOf = async (key: string): Promise<unknown> => (await inspect({ ...K, key }))?.status;
  await worker().deliver(1, { key: 'idle' });
  await worker({ handler: bad }).deliver(1, { key: 'blocked' });
  await worker({ handler: async () => retry(new Error('x')) }).deliver(1, { key: 'retrying' });
  await worker().deliver(2, { key: 'waiting' });
  void worker({ faults: { 'commit 1': { kind: 'crash', when: 'after' } } }).deliver(1, { key: 'stalled' });
  await clock.advance(100);
  for (const key of ['idle', 'blocked', 'retrying', 'waiting']) assert.equal(await statusOf(key), key);
  assert.equal(await statusOf('stalled'), 'running');
  await clock.advance(60_000);
  assert.deepEqual([await statusOf('stalled'), await statusOf('retrying')], ['stalled', 'due']);
  await resume({ ...K, key: 'blocked' });
  assert.equal(await statusOf('blocked'), 'due');
});

test('skip of missing numbers lets what is held behind them run, and leaves a running stream alone', async () => {
  const bed = bench();
  const { clock, worker, runs, state } = bed;
  const { skip } = worker().streams;
  for (const number of [1, 5]) await worker().deliver(number);
  assert.deepEqual([await skip(K, 3), await skip(K, 4)], [true, true]);
  await worker().sweep();
  assert.deepEqual([runs, state().last, state().held], [['1:a', '5:a'], 5, 0]);
  const slow: Handler = async () => {
    await sleep(clock, 1_000);
    return ack();
  };
  const running = worker({ handler: slow }).deliver(6);
  await clock.advance(100);
  assert.equal(await skip(K, 6).then(String, codeOf), 'STREAM_BUSY');
  await clock.until(running);
});

test('what is skipped as poison has its dead letter, and what is held behind it runs', async () => {
  const deadLettered: string[] = [];
  const bed = bench({
    deadLetters: (next) => async (message, context) => {
      const outcome = await next(message, context);
      if (outcome.kind !== 'deadLetter') return outcome;
      deadLettered.push(`${message.attributes.sequence} ${codeOf(outcome.error)}`);
      return { ...outcome, published: true };
    },
  });
  for (const number of [1, 2]) await bed.worker({ handler: bad }).deliver(number);
  assert.equal(await bed.worker().streams.skip(K, 1), true);
  await bed.worker().sweep();
  assert.deepEqual([deadLettered, bed.state().last, bed.runs], [['1 BAD'], 2, ['1:a', '2:a']]);
});

test('a wake-up of one source leaves the stream of another alone', async () => {
  const bed = bench();
  const streams = bed.worker().streams;
  const deliver = streams.middleware(failing);
  const context = { ...contextOf(bed), source: 'another' };
  await deliver(messageOf(1), context);
  await bed.worker({ handler: failing }).deliver(1);
  await bed.clock.advance(1_000);
  await waking(bed);
  const other = bed.store.stateOf({ ...K, source: 'another' });
  assert.deepEqual([bed.state().last, other?.last, other?.attempts], [1, 0, 1]);
});
