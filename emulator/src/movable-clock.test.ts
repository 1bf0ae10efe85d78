import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Clock } from './clock.ts';
import { movableClock } from './movable-clock.ts';

const START = Date.UTC(2030, 0, 1);
const DAY_MS = 86_400_000;

/** Real time that a test moves by hand. */
function handClock(): Clock & { pass(milliseconds: number): void } {
  let time = START;
  const timers = new Set<{ at: number; callback: () => void }>();
  return {
    now: () => time,
    after(milliseconds, callback) {
      const timer = { at: time + milliseconds, callback };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    pass(milliseconds) {
      time += milliseconds;
      for (const timer of [...timers].sort((a, b) => a.at - b.at)) {
        if (timer.at > time || !timers.delete(timer)) continue;
        timer.callback();
      }
    },
  };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test('runs with real time until it is frozen', () => {
  const real = handClock();
  const clock = movableClock(settled, real);
  const fired: string[] = [];
  clock.after(20, () => fired.push('b'));
  clock.after(10, () => fired.push('a'));
  real.pass(10);
  assert.deepEqual([clock.now() - START, fired], [10, ['a']]);
  real.pass(10);
  assert.deepEqual(fired, ['a', 'b']);
});

test('shows one time while it is frozen, and goes on from there', () => {
  const real = handClock();
  const clock = movableClock(settled, real);
  let fired = 0;
  clock.after(10, () => fired++);
  clock.freeze();
  real.pass(1_000);
  assert.deepEqual([clock.now() - START, fired], [0, 0]);
  clock.resume();
  real.pass(9);
  assert.equal(fired, 0);
  real.pass(1);
  assert.deepEqual([clock.now() - START, fired], [10, 1]);
});

test('fires what falls due on the way in order, each at its own time, and what that causes', async () => {
  const clock = movableClock(settled, handClock());
  clock.freeze();
  const fired: (readonly [string, number])[] = [];
  const note = (name: string) => () => void fired.push([name, clock.now() - START]);
  clock.after(2 * DAY_MS, note('late'));
  clock.after(DAY_MS, () => {
    note('first')();
    clock.after(DAY_MS / 2, note('caused'));
  });
  clock.after(DAY_MS, note('second'));
  assert.equal(await clock.advance(2 * DAY_MS), 4);
  assert.deepEqual(fired, [
    ['first', DAY_MS],
    ['second', DAY_MS],
    ['caused', DAY_MS * 1.5],
    ['late', DAY_MS * 2],
  ]);
  assert.equal(clock.now() - START, 2 * DAY_MS);
});

test('awaits what follows from one time before the next', async () => {
  let busy = 0;
  const waits: number[] = [];
  const clock = movableClock(async () => {
    waits.push(busy);
    while (busy > 0) await settled();
  }, handClock());
  clock.freeze();
  const order: string[] = [];
  clock.after(1, () => {
    busy += 1;
    void settled()
      .then(settled)
      .then(() => {
        order.push('answered');
        busy -= 1;
      });
  });
  clock.after(2, () => order.push('next'));
  await clock.advance(10);
  assert.deepEqual(order, ['answered', 'next']);
  assert.ok(waits.includes(1));
});

test('a cancelled timer does not fire, also when it is cancelled on the way', async () => {
  const clock = movableClock(settled, handClock());
  clock.freeze();
  let fired = 0;
  const cancel = clock.after(2, () => fired++);
  clock.after(1, cancel);
  await clock.advance(5);
  assert.equal(fired, 0);
});

test('while it runs in real time it can be moved too, and then goes on', async () => {
  const real = handClock();
  const clock = movableClock(settled, real);
  let fired = 0;
  clock.after(DAY_MS, () => fired++);
  clock.after(DAY_MS + 50, () => fired++);
  await clock.advance(DAY_MS);
  assert.equal(fired, 1);
  real.pass(50);
  assert.deepEqual([fired, clock.now() - START], [2, DAY_MS + 50]);
});

test('may be frozen and resumed while it is being moved', async () => {
  const real = handClock();
  const clock = movableClock(settled, real);
  clock.after(1, () => clock.freeze());
  await clock.advance(10);
  real.pass(5);
  assert.deepEqual([clock.isFrozen(), clock.now() - START], [true, 10]);
  clock.after(1, () => clock.resume());
  await clock.advance(10);
  real.pass(5);
  assert.deepEqual([clock.isFrozen(), clock.now() - START], [false, 25]);
});

test('moves that overlap are made one after the other', async () => {
  const clock = movableClock(settled, handClock());
  clock.freeze();
  await Promise.all([clock.advance(100), clock.advance(50)]);
  assert.equal(clock.now() - START, 150);
});

test('runUntilIdle stops at the last timer, and at its limit when there is always another', async () => {
  const clock = movableClock(settled, handClock());
  clock.freeze();
  clock.after(5, () => {});
  assert.equal(await clock.runUntilIdle(DAY_MS), 1);
  assert.equal(clock.now() - START, 5);
  const again = (): void => void clock.after(1_000, again);
  again();
  assert.equal(await clock.runUntilIdle(10_000), 10);
});

test('a move that fails leaves the clock as it was before: running or frozen', async () => {
  const real = handClock();
  const clock = movableClock(() => Promise.reject(new Error('busy')), real);
  await assert.rejects(clock.advance(10), /busy/);
  const before = clock.now();
  real.pass(7);
  assert.equal(clock.now() - before, 7);
});

test('property: however it is moved, timers fire in order of their times and never early', async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('after' as const), ms: fc.integer({ min: 0, max: 50 }) }),
    fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 40 }) }),
    fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 40 }) }),
    fc.record({ kind: fc.constantFrom('freeze' as const, 'resume' as const), ms: fc.constant(0) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const real = handClock();
      const clock = movableClock(settled, real);
      const due: number[] = [];
      let last = -1;
      for (const { kind, ms } of steps) {
        if (kind === 'after') {
          const at = clock.now() + ms;
          due.push(at);
          clock.after(ms, () => {
            assert.ok(clock.now() >= at && at >= last, 'in order and not early');
            last = at;
            due.splice(due.indexOf(at), 1);
          });
        } else if (kind === 'advance') await clock.advance(ms);
        else if (kind === 'pass') real.pass(ms);
        else clock[kind]();
      }
      await clock.advance(100);
      assert.deepEqual(due, []);
    }),
    { numRuns: 100 },
  );
});

for (const frozen of [false, true]) {
  test(`starts at a later time without firing what falls due on the way (${frozen ? 'frozen' : 'real'})`, async () => {
    const real = handClock();
    const clock = movableClock(settled, real);
    const fired: string[] = [];
    const cancel = clock.after(10, () => fired.push('before'));
    if (frozen) clock.freeze();
    await clock.startAt(START + DAY_MS, () => {
      assert.equal(clock.now(), START + DAY_MS);
      cancel();
      clock.after(10, () => fired.push('after'));
    });
    assert.deepEqual([clock.now(), clock.isFrozen(), fired], [START + DAY_MS, frozen, []]);
    await clock.startAt(START, () => undefined);
    assert.equal(clock.now(), START + DAY_MS, 'never back');
    clock.resume();
    real.pass(10);
    assert.deepEqual(fired, ['after']);
  });
}

test('is where it was when what should start there fails', async () => {
  const real = handClock();
  const clock = movableClock(settled, real);
  let fired = 0;
  clock.after(10, () => (fired += 1));
  const failing = clock.startAt(START + DAY_MS, () => {
    throw new Error('not a state');
  });
  await assert.rejects(failing, /not a state/);
  assert.deepEqual([clock.now(), fired], [START, 0]);
  real.pass(10);
  assert.deepEqual([clock.now(), fired], [START + 10, 1]);
});

test('a start ends the move in progress and those that wait', async () => {
  const real = handClock();
  const clock = movableClock(settled, real);
  let fired = 0;
  const again = (): void => {
    fired += 1;
    clock.after(1, again);
  };
  const cancel = clock.after(1, again);
  const moves = [clock.advance(DAY_MS), clock.advance(DAY_MS)];
  const ended = Promise.allSettled(moves);
  for (let turn = 0; turn < 20; turn++) await settled();
  await clock.startAt(0, cancel);
  assert.deepEqual(
    (await ended).map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  const reached = clock.now();
  assert.ok(fired > 0 && reached < START + DAY_MS);
  real.pass(5);
  assert.equal(clock.now(), reached + 5, 'in real time again');
  await clock.advance(1);
});
