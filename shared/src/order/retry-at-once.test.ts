/** A head that failed and is due again at once is tried again by whoever has it in hand. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { inProgressElsewhere } from '../errors.ts';
import { compose, type Handler, type Middleware } from '../handler.ts';
import { type Log, silent } from '../log.ts';
import { ack, deadLetter, type Outcome, retry } from '../outcome.ts';
import { inOrder } from './in-order.ts';
import { bench, CONSUMER, LEASE_MS, messageOf, kindOf } from './testing/bench.ts';
import { contextFor } from './testing/plan.ts';

const failing = (sequence: number, times: number): Handler => {
  let left = times;
  return async ({ attributes }) =>
    attributes.sequence === String(sequence) && left-- > 0 ? retry(new Error('not yet')) : ack();
};
const all = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1);

test('alone: it is counted, tried again after its pause, and nothing is stored', async () => {
  const { clock, worker, runs, state, heldNumbers, errors, wakes } = bench({ retryMin: '20ms' });
  const { deliver } = worker({ handler: failing(1, 2) });
  const begun = clock.now();
  const outcome = deliver(1);
  await clock.advance(19);
  assert.deepEqual([runs, state().attempts, state().lease !== null], [['1:a'], 1, true]);
  assert.equal(kindOf(await clock.until(outcome)), 'ack handled');
  assert.deepEqual([runs.length, state().last, state().attempts, heldNumbers()], [3, 1, 0, []]);
  assert.deepEqual([clock.now() - begun, errors.length, wakes.length], [60, 2, 0], '20 ms and 40 ms');
});

test('in a line: what ran is done, what waits behind it runs in its turn, and nothing is stored', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench({ retryMin: '10ms' });
  const { deliver } = worker({ handler: failing(4, 1) });
  const outcomes = await clock.until(Promise.all(all(12).map((number) => deliver(number))));
  assert.deepEqual(new Set(outcomes.map(kindOf)), new Set(['ack handled']));
  const expected = [1, 2, 3, 4, ...all(12).slice(3)].map((number) => `${number}:a`);
  assert.deepEqual([runs, state().last, state().attempts, heldNumbers()], [expected, 12, 0, []]);
});

test('the fourth failure in a row is stored, as are those with a longer pause', async () => {
  for (const [retryMin, starts] of [
    ['1ms', 4],
    ['60ms', 2],
    ['100ms', 2],
    ['101ms', 1],
  ] as const) {
    const { clock, worker, runs, state, heldNumbers } = bench({ retryMin });
    const { deliver } = worker({ handler: failing(1, 9) });
    assert.equal(kindOf(await clock.until(deliver(1))), 'ack held');
    assert.deepEqual([runs.length, state().attempts, heldNumbers()], [starts, starts, [1]], retryMin);
  }
});

test('each of them counts towards poison', async () => {
  const { clock, worker, state } = bench({ retryMin: '1ms', maxAttempts: 2 });
  const { deliver } = worker({ handler: failing(1, 9) });
  assert.equal(kindOf(await clock.until(deliver(1))), 'ack held');
  assert.deepEqual([state().halted !== null, state().attempts], [true, 2]);
});

test('the first number of a line fails after others have run: its attempts begin at one', async () => {
  const { clock, worker, state } = bench({ retryMin: '10ms', maxAttempts: 2 });
  let failures = 0;
  const handler: Handler = async ({ attributes }) => {
    if (attributes.sequence !== '2' && attributes.sequence !== '3') return ack();
    failures += 1;
    return failures % 2 === 1 ? retry(new Error('once each')) : ack();
  };
  const { deliver } = worker({ handler });
  const outcomes = all(5).map((number) => deliver(number));
  assert.deepEqual(new Set((await clock.until(Promise.all(outcomes))).map(kindOf)), new Set(['ack handled']));
  assert.deepEqual([failures, state().last, state().halted], [4, 5, null]);
});

test('a process that dies in the pause: the redelivery runs it, and its identity stays', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench({ retryMin: '50ms' });
  // Counted, and nothing after it.
  const dying = worker({ handler: failing(1, 9), faults: { 'write 2': { kind: 'crash', when: 'after' } } });
  void dying.deliver(1);
  await clock.advance(LEASE_MS + 1);
  assert.deepEqual([state().attempts, heldNumbers()], [1, []]);
  const other = worker();
  await other.sweep();
  assert.equal(kindOf(await other.deliver(1, { content: 'b' })), 'deadLetter SEQUENCE_CONFLICT');
  assert.equal(kindOf(await other.deliver(1)), 'ack handled');
  assert.deepEqual([runs, state().last, state().attempts], [['1:a', '1:a'], 1, 0]);
});

test('a lost reply counts the failure once', async () => {
  for (const kind of ['reply lost', 'repeated'] as const) {
    const { clock, worker, runs, state } = bench({ retryMin: '10ms' });
    const { deliver } = worker({ handler: failing(1, 3), faults: { 'write 2': { kind } } });
    const outcome = deliver(1);
    await clock.advance(9);
    assert.deepEqual([runs.length, state().attempts], [1, 1], kind);
    assert.equal(kindOf(await clock.until(outcome)), 'ack handled', kind);
  }
});

test('while something is held for the key it is stored at once', async () => {
  const { clock, worker, runs, heldNumbers } = bench({ retryMin: '10ms' });
  const { deliver } = worker({ handler: failing(1, 1) });
  assert.equal(kindOf(await deliver(3)), 'ack held');
  assert.equal(kindOf(await clock.until(deliver(1))), 'ack held');
  assert.deepEqual([runs, heldNumbers()], [['1:a'], [1, 3]]);
});

test('a copy of what ran before the failure, held by another process meanwhile, does not stay', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench({ retryMin: '10ms' });
  let failures = 1;
  const handler: Handler = async ({ attributes }) => {
    await sleep(clock, 100);
    return attributes.sequence === '4' && failures-- > 0 ? retry(new Error('once')) : ack();
  };
  const { deliver } = worker({ handler });
  const outcomes = Promise.all(all(8).map((number) => deliver(number)));
  // 2 is done by then, and not counted yet.
  await clock.advance(250);
  assert.equal(kindOf(await worker().deliver(2)), 'ack held');
  await clock.until(outcomes);
  await clock.advance(1_000);
  await worker().sweep();
  assert.deepEqual([state().last, heldNumbers(), state().lease], [8, [], null]);
  assert.deepEqual(
    runs,
    [1, 2, 3, 4, ...all(8).slice(3)].map((number) => `${number}:a`),
  );
});

test('failures of a number that has got through are not those of the number behind it, which is stored', async () => {
  const buried: string[] = [];
  const deadLetters: Middleware = (next) => async (message, context) => {
    const outcome = await next(message, context);
    buried.push(message.id);
    return outcome.kind === 'deadLetter' ? { ...outcome, published: true } : outcome;
  };
  for (const poison of ['halt', 'skip'] as const) {
    const made = bench({ retryMin: '10ms', maxAttempts: 3, poison, deadLetters });
    const { clock, worker, runs, state, heldNumbers } = made;
    const left: Record<string, number> = { 4: 2, 5: 1 };
    const handler: Handler = async ({ attributes: { sequence = '' } }) => {
      left[sequence] = (left[sequence] ?? 0) - 1;
      // The pause of 5 is too long to be waited for in hand.
      return Number(left[sequence]) >= 0 ? retry(new Error('no'), sequence === '5' ? '5s' : '1ms') : ack();
    };
    const { deliver, sweep } = worker({ handler });
    const outcomes = await clock.until(Promise.all(all(8).map((number) => deliver(number))));
    assert.deepEqual([kindOf(outcomes[4] as Outcome), state().attempts, state().last], ['ack held', 1, 4]);
    await clock.advance(5_000);
    await sweep();
    const expected = [1, 2, 3, 4, 4, 4, 5, ...all(8).slice(4)].map((number) => `${number}:a`);
    assert.deepEqual([runs, state().last, state().halted, heldNumbers()], [expected, 8, null, []], poison);
  }
  assert.deepEqual(buried, []);
});

test('a failure whose commit has no reply, and cannot be looked for, counts once', async () => {
  for (const kind of ['reply lost', 'refused'] as const) {
    const { clock, worker, runs, state } = bench({ retryMin: '10ms' });
    const faults = { 'write 2': { kind }, 'read 2': { kind: 'refused' } } as const;
    const { deliver } = worker({ handler: failing(1, 9), faults });
    assert.equal(kindOf(await clock.until(deliver(1))), 'ack held');
    assert.deepEqual([runs.length, state().attempts], [1, 1], kind);
  }
});

for (const [what, fail] of [
  ['a failure', retry],
  ['poison', deadLetter],
] as const) {
  test(`behind ${what} in a line, too, what is stored runs in the time of its first delivery, which waits for it`, async () => {
    const { clock, store, worker, state } = bench();
    const logs = new Map<string | undefined, Log>();
    let failures = 1;
    const handler: Handler = async ({ attributes: { sequence } }, { log }) => {
      logs.set(sequence, log);
      await sleep(clock, 100);
      return sequence === '3' && failures-- > 0 ? fail(new Error('once')) : ack();
    };
    const deadLetters: Middleware = (next) => async (message, context) => {
      await sleep(clock, 50);
      const outcome = await next(message, context);
      return outcome.kind === 'deadLetter' ? { ...outcome, published: true } : outcome;
    };
    const options = { clock, retryMin: '10ms', poison: 'skip', deadLetters } as const;
    const chain = compose(handler, [inOrder(store, options)]);
    const outcomes = [1, 2, 3].map((number) =>
      chain(messageOf(number), { ...contextFor(clock, 60_000, CONSUMER), log: { ...silent } }),
    );
    // The second try of 3, or its dead letter.
    await clock.advance(320);
    assert.equal(kindOf(await worker().deliver(4)), 'ack held');
    await clock.until(Promise.all(outcomes));
    assert.deepEqual([state().last, [...logs.keys()]], [4, ['1', '2', '3', '4']]);
    assert.equal(logs.get('4'), logs.get('2'));
  });
}

test('a line ends after a second: what fails later is stored, and its first delivery waits for no other try of it', async () => {
  const { clock, worker, state, heldNumbers } = bench({ retryMin: '10ms' });
  let failures = 1;
  const handler: Handler = async ({ attributes: { sequence } }) => {
    await sleep(clock, sequence === '3' ? 1_500 : 100);
    return sequence === '3' && failures-- > 0 ? retry(new Error('once')) : ack();
  };
  const { deliver } = worker({ handler });
  const [, lead, failed] = [1, 2, 3].map((number) => deliver(number));
  assert.equal(kindOf(await clock.until(lead as Promise<Outcome>, 1_750)), 'ack handled');
  assert.equal(kindOf(await clock.until(failed as Promise<Outcome>)), 'ack held');
  assert.deepEqual([state().last, state().attempts, heldNumbers()], [2, 1, [3]]);
});

test('its first delivery has its own time: what fails there after a second is tried again', async () => {
  const { clock, worker, heldNumbers } = bench({ retryMin: '10ms' });
  let failures = 1;
  const handler: Handler = async ({ attributes: { sequence } }) => {
    await sleep(clock, sequence === '2' ? 1_500 : 100);
    return sequence === '2' && failures-- > 0 ? retry(new Error('once')) : ack();
  };
  const { deliver } = worker({ handler });
  const outcomes = [1, 2].map((number) => deliver(number));
  assert.equal(kindOf((await clock.until(Promise.all(outcomes)))[1] as Outcome), 'ack handled');
  assert.deepEqual(heldNumbers(), []);
});

test('in a line, too, the fourth failure is stored with all four', async () => {
  const { clock, worker, state, heldNumbers } = bench({ retryMin: '1ms' });
  const { deliver } = worker({ handler: failing(3, 9) });
  await clock.until(Promise.all(all(3).map((number) => deliver(number))));
  assert.deepEqual([state().last, state().attempts, heldNumbers()], [2, 4, [3]]);
});

test('with the failure the lease is renewed, and the key is due when it ends', async () => {
  const { clock, worker, state } = bench({ retryMin: '50ms' });
  const handler: Handler = async () => {
    await sleep(clock, LEASE_MS - 100);
    return retry(new Error('late'));
  };
  void worker({ handler }).deliver(1);
  await clock.advance(LEASE_MS - 60);
  const end = clock.now() - 40 + LEASE_MS;
  assert.deepEqual([state().attempts, state().lease?.untilMs, state().readyAt], [1, end, end]);
});

test('what says nothing about the message is stored, and so is what has no time left for another try', async () => {
  const { clock, worker, runs, heldNumbers } = bench({ retryMin: '10ms' });
  const busy: Handler = async () => retry(inProgressElsewhere('another delivery has it'));
  assert.equal(kindOf(await clock.until(worker({ handler: busy }).deliver(1))), 'ack held');
  assert.deepEqual([runs.length, heldNumbers()], [1, [1]]);
  const other = bench();
  const chain = compose(failing(1, 9), [inOrder(other.store, { clock: other.clock, retryMin: '50ms' })]);
  const outcome = chain(messageOf(1), contextFor(other.clock, 50, CONSUMER));
  assert.equal(kindOf(await other.clock.until(outcome, 0)), 'ack held', 'at once');
});
