/**
 * Poison: a number that can never succeed blocks its own stream visibly, or is skipped after its dead letter. Attempts
 * are counted across processes; no number passes over poison before a commit.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, inProgressElsewhere, PermanentError, TransientError } from '../../../shared/src/errors.ts';
import type { Handler, Middleware } from '../../../shared/src/handler.ts';
import { ack, deadLetter, type Outcome, retry } from '../../../shared/src/outcome.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import { bench, type Bench, CONSUMER, LEASE_MS, REF } from './bench.ts';

const kindOf = (outcome: Outcome): string => {
  if (outcome.kind === 'ack') return `ack ${outcome.reason}`;
  const published = outcome.kind === 'deadLetter' && outcome.published ? ' published' : '';
  return `${outcome.kind} ${codeOf(outcome.error)}${published}`;
};

/** Fails for one number, as often as `times` says. */
const failing =
  (number: number, times: number, outcome: () => Outcome): Handler =>
  async (message) =>
    message.attributes.sequence === String(number) && times-- > 0 ? outcome() : ack();
const bad = (): Outcome => deadLetter(new PermanentError('BAD', 'never'));
const down = (): Outcome => retry(new Error('down'));

/** A dead-letter topic that refuses as often as `refusals` says. */
function recordedDeadLetters(refusals = 0): Readonly<{ deadLettered: string[]; deadLetters: Middleware }> {
  const deadLettered: string[] = [];
  const deadLetters: Middleware = (next) => async (message, context) => {
    const outcome = await next(message, context);
    if (outcome.kind !== 'deadLetter' || outcome.published) return outcome;
    if (refusals-- > 0) return retry(new TransientError('DEAD_LETTER_UNPUBLISHED', 'refused'));
    deadLettered.push(`${message.attributes.sequence} ${codeOf(outcome.error)} ${context.source}`);
    return { ...outcome, published: true };
  };
  return { deadLettered, deadLetters };
}

async function sweeps({ clock, worker }: Bench, count: number, handler: Handler): Promise<void> {
  const { sweep } = worker({ handler });
  for (let round = 0; round < count; round += 1) {
    await clock.advance(60_000);
    await sweep();
  }
}

test('B18: a number that the handler dead-letters blocks its stream visibly; other streams go on', async () => {
  const made = bench();
  const { worker, runs, state, heldNumbers, errors } = made;
  const handler = failing(1, 1, bad);
  const { deliver } = worker({ handler });
  assert.equal(kindOf(await deliver(1)), 'ack held');
  assert.equal(kindOf(await deliver(2)), 'ack held');
  assert.equal(kindOf(await deliver(1, { key: 'other', content: 'o' })), 'ack handled');
  await sweeps(made, 3, handler);
  assert.deepEqual([runs, state().last, heldNumbers()], [['1:a', '1:o'], 0, [1, 2]]);
  const { blocked, lease, readyAt, waitingSince } = state();
  assert.deepEqual(
    [blocked?.code, blocked?.text, lease, readyAt, waitingSince],
    ['BAD', 'never', null, null, null],
  );
  assert.match(errors.join(), /blocked at a message that cannot succeed/);
  assert.deepEqual(
    (await orderedDelivery(made.store, {}).list(CONSUMER, { state: 'blocked' })).streams.length,
    1,
  );
});

test('resume runs the number and what waits behind it, in order, before live traffic', async () => {
  const made = bench();
  const { worker, runs, state, store } = made;
  const handler = failing(1, 1, bad);
  const { deliver, sweep } = worker({ handler });
  for (const number of [1, 3, 2]) await deliver(number);
  const { resume } = orderedDelivery(store, {});
  assert.equal(await resume(REF), true);
  assert.equal(await resume(REF), false);
  // Live traffic runs behind what is held, in the same batch.
  assert.equal(kindOf(await deliver(4)), 'ack handled');
  await sweep();
  assert.deepEqual([runs, state().last, state().blocked], [['1:a', '1:a', '2:a', '3:a', '4:a'], 4, null]);
});

test('a number is poison after the attempts failures, counted across processes', async () => {
  const made = bench({ retry: { maxAttempts: 4 } });
  const { worker, runs, state } = made;
  const handler = failing(1, 100, down);
  await worker({ handler }).deliver(1);
  await worker().deliver(2);
  await sweeps(made, 2, handler);
  assert.deepEqual([state().attempts, state().blocked], [3, null]);
  await sweeps(made, 3, handler);
  assert.deepEqual([runs.length, state().attempts, state().blocked?.code], [4, 4, 'Error']);
});

test('a number that kills its processes is poison after the attempts starts, and then not started again', async () => {
  const made = bench({ retry: { maxAttempts: 3 } });
  const { clock, worker, runs, state } = made;
  const dies: Handler = () => new Promise(() => undefined);
  const crash = { kind: 'crash', when: 'before' } as const;
  await worker({ handler: failing(1, 1, down) }).deliver(1);
  for (let round = 0; round < 2; round += 1) {
    await clock.advance(2 * LEASE_MS);
    const dying = worker({ handler: dies, faults: { 'commit 2': crash } });
    void dying.sweep();
    await clock.advance(2 * LEASE_MS);
  }
  assert.equal(runs.length, 3);
  await worker().sweep();
  assert.deepEqual([runs.length, state().last, state().blocked?.code], [3, 0, 'ATTEMPTS_EXHAUSTED']);
});

test('claims in progress elsewhere, lost leases and stores that are down never make poison', async () => {
  const made = bench({ retry: { maxAttempts: 2 } });
  const { worker, state, runs } = made;
  const errors = [
    inProgressElsewhere('x'),
    new TransientError('STORE_UNAVAILABLE', 'x'),
    new TransientError('LEASE_LOST', 'x'),
  ];
  const handler = failing(1, 9, () => retry(errors[runs.length % 3]));
  await worker({ handler }).deliver(1);
  await sweeps(made, 12, handler);
  assert.deepEqual([state().last, state().blocked], [1, null]);
});

test('skip: the dead letter is published, then the stream goes on; delivered, and held', async () => {
  const { deadLettered, deadLetters } = recordedDeadLetters();
  const { worker, runs, state, heldNumbers } = bench({ onPoison: 'skip', deadLetters });
  const { deliver } = worker({
    handler: async (message) => (['1', '4'].includes(message.attributes.sequence ?? '') ? bad() : ack()),
  });
  for (const number of [3, 4, 5, 2]) await deliver(number);
  assert.equal(kindOf(await deliver(1)), 'deadLetter BAD published');
  assert.deepEqual(deadLettered, ['1 BAD sub', '4 BAD sub']);
  assert.deepEqual(
    [runs.map((run) => run[0]), state().last, heldNumbers()],
    [['1', '2', '3', '4', '5'], 5, []],
  );
  assert.deepEqual(
    [state().skipped, state().lease, state().readyAt],
    [
      [
        { from: 1, to: 1 },
        { from: 4, to: 4 },
      ],
      null,
      null,
    ],
  );
  assert.equal(kindOf(await deliver(4)), 'deadLetter LATE_ARRIVAL');
  assert.equal(kindOf(await deliver(5)), 'ack stale');
});

test('B18: a dead letter that is not published does not advance the stream', async () => {
  const { deadLettered, deadLetters } = recordedDeadLetters(2);
  const made = bench({ onPoison: 'skip', deadLetters });
  const { worker, runs, state, heldNumbers } = made;
  const { deliver } = worker({ handler: failing(1, 9, bad) });
  assert.equal(kindOf(await deliver(1)), 'ack held');
  await deliver(2);
  await sweeps(made, 1, failing(1, 9, bad));
  assert.deepEqual([runs.length, deadLettered, state().last, heldNumbers()], [2, [], 0, [1, 2]]);
  await sweeps(made, 1, failing(1, 9, bad));
  assert.deepEqual([runs.at(-1), deadLettered, state().last, heldNumbers()], ['2:a', ['1 BAD sub'], 2, []]);
});

test('skip: a process that dies after the dead letter repeats it, and loses nothing', async () => {
  const { deadLettered, deadLetters } = recordedDeadLetters();
  const made = bench({ onPoison: 'skip', deadLetters });
  const { clock, worker, state } = made;
  const dies = { 'commit 2': { kind: 'crash', when: 'before' } } as const;
  void worker({ handler: failing(1, 1, bad), faults: dies }).deliver(1);
  await clock.advance(2 * LEASE_MS);
  assert.equal(kindOf(await worker().deliver(1)), 'ack held');
  await sweeps(made, 2, failing(1, 1, bad));
  assert.deepEqual([deadLettered.length, state().last, state().skipped], [2, 1, [{ from: 1, to: 1 }]]);
});

test('a dead letter that the handler’s own stage has published is not published again', async () => {
  const { deadLettered, deadLetters } = recordedDeadLetters();
  const { worker, state } = bench({ onPoison: 'skip', deadLetters });
  const { deliver } = worker({ handler: async () => ({ ...bad(), published: true }) as Outcome });
  assert.equal(kindOf(await deliver(1)), 'deadLetter BAD published');
  assert.deepEqual([deadLettered, state().last], [[], 1]);
});

test('poison of `once`, one dedupId under two numbers, blocks its stream and does not wait without end', async () => {
  const made = bench();
  const { worker, state } = made;
  const conflict = (): Outcome =>
    deadLetter(new PermanentError('DEDUP_CONFLICT', 'the dedupId has other data'));
  const handler = failing(2, Infinity, conflict);
  const { deliver } = worker({ handler });
  await deliver(1);
  assert.equal(kindOf(await deliver(2)), 'ack held');
  assert.deepEqual([state().last, state().blocked?.code], [1, 'DEDUP_CONFLICT']);
});

test('a block whose commit is not confirmed is no ack, and one whose reply is lost blocks', async () => {
  const refused = { kind: 'refused' } as const;
  const faults = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`commit ${index + 2}`, refused]),
  );
  const first = bench();
  const answer = first.worker({ handler: failing(1, 9, bad), faults }).deliver(1);
  assert.equal(kindOf(await first.clock.until(answer)), 'retry STORE_UNAVAILABLE');
  const second = bench();
  const lost = second.worker({
    handler: failing(1, 9, bad),
    faults: { 'commit 2': { kind: 'reply lost' } },
  });
  const outcome = kindOf(await second.clock.until(lost.deliver(1)));
  assert.deepEqual([outcome, second.state().blocked?.code], ['ack held', 'BAD']);
});

test('a message too large to be held blocks its stream too, and comes again', async () => {
  const { worker, state, store } = bench({ maxHeldBytes: 1_000 });
  const large = { content: 'x'.repeat(2_000) };
  const { deliver } = worker({ handler: failing(1, 1, bad) });
  assert.equal(kindOf(await deliver(1, large)), 'retry BAD');
  assert.equal(kindOf(await deliver(1, large)), 'retry TOO_LARGE_TO_HOLD');
  assert.equal(state().blocked?.code, 'BAD');
  await orderedDelivery(store, {}).resume(REF);
  await worker().sweep();
  assert.equal(kindOf(await deliver(1, large)), 'ack handled');
});

test('skip without dead letters, and unknown policies, are refused', () => {
  const { store } = bench();
  assert.throws(() => orderedDelivery(store, { onPoison: 'skip' }), /deadLetters/);
  assert.throws(() => orderedDelivery(store, { onPoison: 'drop' as never }), /onPoison is "drop"/);
  assert.throws(() => orderedDelivery(store, { retry: { maxAttempts: 0 } }), /retry.maxAttempts is 0/);
  assert.throws(() => orderedDelivery(store, { onGap: 'x' as never }), /onGap/);
  assert.throws(() => orderedDelivery(store, { gap: { timeout: '10ms' } }), /gap.timeout/);
});
