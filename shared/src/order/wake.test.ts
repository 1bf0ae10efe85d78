import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PermanentError, TransientError } from '../errors.ts';
import type { Handler } from '../handler.ts';
import { silent } from '../log.ts';
import { ack, deadLetter, retry } from '../outcome.ts';
import type { InOrderOptions } from './options.ts';
import { type Bench, bench, CONSUMER, LEASE_MS } from './testing/bench.ts';
import { wakeOrder, type Woken } from './wake.ts';

const failing: Handler = async () => retry(new TransientError('DOWN', 'not now'));

/** A wake-up of the bench's key, under options of its own and a handler that notes what it runs. */
function waking(
  { clock, store, runs, wakes }: Bench,
  handler: Handler = async () => ack(),
  options: InOrderOptions = {},
) {
  const wake = wakeOrder(
    store,
    {
      clock,
      lease: `${LEASE_MS}ms`,
      wake: (key, atMs) => void wakes.push({ key, atMs }),
      ...options,
    },
    async (message, context) => {
      runs.push(`${message.attributes.sequence}:woken`);
      return handler(message, context);
    },
  );
  return (key = 'k', consumer = CONSUMER): Promise<Woken> =>
    clock.until(
      wake(key, {
        consumer,
        now: clock.now,
        deadline: clock.monotonic() + 60_000,
        signal: new AbortController().signal,
        log: silent,
      }),
    );
}

const nothing = { drained: 0, repaired: 0, skipped: 0 };

test('a head that failed runs when its wake-up comes, with all that waited for it', async () => {
  const bed = bench();
  await bed.worker({ handler: failing }).deliver(1);
  await bed.worker().deliver(2);
  const [asked] = bed.wakes;
  assert.equal(asked?.key, 'k');
  await bed.clock.advance((asked?.atMs ?? 0) - bed.clock.now());
  assert.deepEqual(await waking(bed)(), { ...nothing, kind: 'taken', drained: 2 });
  assert.deepEqual(bed.runs, ['1:a', '1:woken', '2:woken']);
});

test('a wake-up that comes a little early waits; one that comes much too early asks for another', async () => {
  const bed = bench({ retryMin: '2s' });
  await bed.worker({ handler: failing }).deliver(1);
  assert.deepEqual(await waking(bed)(), { ...nothing, kind: 'taken', drained: 1 });
  assert.equal(bed.clock.now(), bed.wakes[0]?.atMs);
  const later = bench({ retryMin: '30s' });
  await later.worker({ handler: failing }).deliver(1);
  const asked = later.wakes.length;
  assert.deepEqual(await waking(later)(), { ...nothing, kind: 'left' });
  assert.deepEqual(later.wakes.slice(asked), [later.wakes[0]]);
  assert.deepEqual(later.runs, ['1:a']);
});

test('one that fails again asks for the next one, after a longer pause', async () => {
  const bed = bench();
  await bed.worker({ handler: failing }).deliver(1);
  await bed.clock.advance(1_000);
  await waking(bed, failing)();
  assert.equal((bed.wakes.at(-1)?.atMs ?? 0) - bed.clock.now(), 2_000);
  assert.equal(bed.state().attempts, 2);
});

test('it takes over from an owner that died, and that counts as an attempt', async () => {
  const bed = bench();
  const dying = bed.worker({ faults: { 'write 2': { kind: 'crash', when: 'before' } } });
  void dying.deliver(1).catch(() => undefined);
  await bed.clock.advance(0);
  await bed.worker().deliver(1);
  assert.deepEqual(await waking(bed)(), { ...nothing, kind: 'left' }, 'its lease is not over');
  await bed.clock.advance(LEASE_MS + 1);
  await waking(bed)();
  assert.deepEqual(bed.runs.at(-1), '1:woken');
  assert.equal(bed.state().last, 1);
});

test('there is nothing to do for a key that is idle or stands still, and none for one that nobody knows', async () => {
  const bed = bench();
  await bed.worker().deliver(1);
  assert.deepEqual(await waking(bed)(), { ...nothing, kind: 'left' });
  const bad = bed.worker({ handler: async () => deadLetter(new PermanentError('BAD', 'never')) });
  await bad.deliver(1, { key: 'poisoned' });
  assert.deepEqual(await waking(bed)('poisoned'), { ...nothing, kind: 'left' });
  assert.deepEqual(await waking(bed)('nobody'), { ...nothing, kind: 'unknown' });
  assert.deepEqual(await waking(bed)('k', 'another consumer'), { ...nothing, kind: 'unknown' });
});

test('it mends the gap of its key as the sweep does', async () => {
  const bed = bench();
  await bed.worker().deliver(2);
  await bed.clock.advance(60_000);
  const gaps = { timeout: '1m', policy: 'skip' } as const;
  assert.deepEqual(await waking(bed, undefined, { gaps })(), {
    kind: 'taken',
    drained: 1,
    repaired: 0,
    skipped: 1,
  });
  assert.deepEqual(bed.runs, ['2:woken']);
});
