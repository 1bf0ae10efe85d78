/**
 * What counts as an attempt of a message: failures of its handler, and processes that died in it. Nothing else brings it
 * nearer to its dead letter, however often it happens.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, inProgressElsewhere, storeUnavailable, TransientError } from '../../../shared/src/errors.ts';
import type { Handler, Middleware } from '../../../shared/src/handler.ts';
import { ack, type Outcome, retry } from '../../../shared/src/outcome.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import { bench, REF } from './bench.ts';

const failed = (): Outcome => retry(new Error('its handler failed'));
/** Failures that say nothing about the message. */
const OTHERS: Readonly<Record<string, () => Outcome>> = {
  'a claim in progress elsewhere': () => retry(inProgressElsewhere('another delivery has it')),
  'a store that is down': () => retry(storeUnavailable('no answer')),
};

/** One outcome for each call, then acks. */
const inTurn = (...outcomes: readonly (() => Outcome)[]): Handler => {
  const left = [...outcomes];
  return async () => (left.shift() ?? ack)();
};

/** A dead-letter topic that refuses once. */
function refusing(): Readonly<{ deadLettered: string[]; deadLetters: Middleware }> {
  const deadLettered: string[] = [];
  let refusals = 1;
  const deadLetters: Middleware = (next) => async (message, context) => {
    const outcome = await next(message, context);
    if (outcome.kind !== 'deadLetter') return outcome;
    if (refusals-- > 0) return retry(new TransientError('DEAD_LETTER_UNPUBLISHED', 'refused'));
    deadLettered.push(`${message.attributes.sequence} ${codeOf(outcome.error)}`);
    return { ...outcome, published: true };
  };
  return { deadLettered, deadLetters };
}

for (const [name, other] of Object.entries(OTHERS)) {
  test(`${name} dead-letters nothing, even where the attempts are used up and the dead letter was refused`, async () => {
    const { deadLettered, deadLetters } = refusing();
    const { clock, worker, runs, state } = bench({
      onPoison: 'skip',
      deadLetters,
      retry: { maxAttempts: 2 },
    });
    const { deliver, sweep } = worker({ handler: inTurn(failed, failed, other, other) });
    await deliver(1);
    for (let round = 0; round < 4; round += 1) {
      await clock.advance(60_000);
      await sweep();
    }
    assert.deepEqual([deadLettered, runs.length, state().last, state().skipped], [[], 5, 1, []]);
  });

  test(`${name} dead-letters nothing that is too large to be held`, async () => {
    const { deadLettered, deadLetters } = refusing();
    const { worker, runs, state } = bench({
      onPoison: 'skip',
      deadLetters,
      retry: { maxAttempts: 2 },
      maxHeldBytes: 1,
    });
    const { deliver } = worker({ handler: inTurn(failed, failed, other) });
    for (let delivery = 0; delivery < 4; delivery += 1) await deliver(1);
    assert.deepEqual([deadLettered, runs.length, state().last, state().skipped], [[], 4, 1, []]);
  });

  test(`${name} does not use up attempts: the next message blocks after its own failures and no sooner`, async () => {
    const { clock, worker, runs, state } = bench({ retry: { maxAttempts: 2 } });
    const { deliver, sweep } = worker({ handler: inTurn(other, failed, other, other, failed) });
    await deliver(1);
    for (let round = 0; round < 6; round += 1) {
      assert.equal(state().blocked === null, round < 4, `after ${runs.length} runs`);
      await clock.advance(60_000);
      await sweep();
    }
    assert.deepEqual([runs.length, state().attempts, state().last], [5, 2, 0]);
  });
}

test('a run that was aborted dead-letters nothing, even where the attempts are used up', async () => {
  const { deadLettered, deadLetters } = refusing();
  const { clock, worker, state } = bench({ onPoison: 'skip', deadLetters, retry: { maxAttempts: 1 } });
  const first = worker({ handler: inTurn(failed) });
  await first.deliver(1);
  const aborted = worker({
    handler: async (_, { signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return retry(signal.reason);
    },
  });
  await clock.advance(60_000);
  await clock.until(aborted.sweep());
  assert.deepEqual([deadLettered, state().last], [[], 0]);
  await clock.advance(60_000);
  await first.sweep();
  assert.deepEqual([deadLettered, state().last, state().skipped], [[], 1, []]);
});

test('a failure whose commit did not arrive is written again, and not assumed to be written', async () => {
  const { worker, runs, state } = bench();
  await worker().deliver(2);
  const { deliver } = worker({
    handler: inTurn(ack, failed),
    faults: { 'commit 2': { kind: 'refused' } },
  });
  await deliver(1);
  const { last, attempts, lease, readyAt, nextTryAt } = state();
  assert.deepEqual([runs, last, attempts, lease], [['1:a', '2:a'], 1, 1, null]);
  assert.ok(readyAt === nextTryAt && nextTryAt > 0);
});

test('a stream that is resumed, or goes on behind what was skipped, gets all its attempts again', async () => {
  const { clock, store, worker, runs, state } = bench({ retry: { maxAttempts: 2 } });
  const deadLetters: Middleware = (next) => async (message, context) => {
    const outcome = await next(message, context);
    return outcome.kind === 'deadLetter' ? { ...outcome, published: true } : outcome;
  };
  const { resume, skip } = orderedDelivery(store, { clock, deadLetters });
  const { deliver, sweep } = worker({ handler: async () => failed() });
  const sweeps = async (): Promise<void> => {
    await clock.advance(60_000);
    await sweep();
  };
  await deliver(1);
  await deliver(2);
  await sweeps();
  assert.deepEqual([state().blocked !== null, runs.length], [true, 2]);
  assert.equal(await resume(REF), true);
  await sweeps();
  assert.deepEqual([state().blocked, state().attempts, runs.length], [null, 1, 3]);
  await sweeps();
  assert.deepEqual([state().blocked !== null, runs.length], [true, 4]);
  assert.equal(await skip(REF, 1), true);
  await sweeps();
  assert.deepEqual([state().blocked, state().attempts, runs.at(-1)], [null, 1, '2:a']);
  await sweeps();
  assert.deepEqual([state().blocked !== null, state().last], [true, 1]);
});
