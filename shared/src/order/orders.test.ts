import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { codeOf, PermanentError, TransientError } from '../errors.ts';
import type { Handler, Middleware } from '../handler.ts';
import { ack, deadLetter, retry } from '../outcome.ts';
import { orders } from './orders.ts';
import { bench, CONSUMER } from './testing/bench.ts';

const bad: Handler = async () => deadLetter(new PermanentError('BAD', 'never'));
const codesOf = (work: Promise<unknown>): Promise<string> => work.then((value) => String(value), codeOf);

function graveyard(refusals = 0): Readonly<{ letters: string[]; deadLetters: Middleware }> {
  const letters: string[] = [];
  const deadLetters: Middleware = (next) => async (message, context) => {
    const outcome = await next(message, context);
    if (outcome.kind !== 'deadLetter') return outcome;
    if (refusals-- > 0) return retry(new TransientError('DEAD_LETTER_UNPUBLISHED', 'no'));
    letters.push(`${message.attributes.sequence} ${codeOf(outcome.error)}`);
    return { ...outcome, published: true };
  };
  return { letters, deadLetters };
}

test('inspect says what a stream waits for, what is held, and who has it', async () => {
  const { clock, worker, store } = bench();
  const { inspect } = orders(store, { consumer: CONSUMER });
  assert.equal(await inspect('k'), undefined);
  const slow: Handler = async () => {
    await sleep(clock, 5_000);
    return ack();
  };
  const since = new Date(clock.now());
  await worker().deliver(4);
  const running = worker({ handler: slow }).deliver(1);
  await clock.advance(1_000);
  const seen = await inspect('k');
  assert.deepEqual(
    [seen?.state, seen?.last, seen?.next, seen?.held, seen?.firstHeld],
    ['running', 0, 1, 1, 4],
  );
  assert.deepEqual([seen?.gap, seen?.waitingSince], [{ from: 1, to: 3 }, since]);
  assert.ok(seen?.leaseOwner !== undefined && seen.leasedUntil !== undefined);
  await clock.until(running);
  const after = await inspect('k');
  assert.deepEqual(
    [after?.state, after?.last, after?.gap, after?.leaseOwner],
    ['waiting', 1, { from: 2, to: 3 }, undefined],
  );
});

test('each state of a stream has a name', async () => {
  const { clock, worker, store } = bench();
  const { inspect, resume } = orders(store, { consumer: CONSUMER });
  const stateOf = async (key: string): Promise<unknown> => (await inspect(key))?.state;
  await worker().deliver(1, { key: 'idle' });
  await worker({ handler: bad }).deliver(1, { key: 'halted' });
  await worker({ handler: async () => retry(new Error('x')) }).deliver(1, { key: 'retrying' });
  void worker({ faults: { 'write 1': { kind: 'crash', when: 'after' } } }).deliver(1, { key: 'stalled' });
  await clock.advance(100);
  assert.deepEqual(
    [await stateOf('idle'), await stateOf('halted'), await stateOf('retrying')],
    ['idle', 'halted', 'retrying'],
  );
  await clock.advance(60_000);
  assert.deepEqual([await stateOf('stalled'), await stateOf('retrying')], ['stalled', 'ready']);
  await resume('halted');
  assert.equal(await stateOf('halted'), 'ready');
});

test('list pages through the streams of one state, the oldest first', async () => {
  const { clock, worker, store } = bench();
  const { list } = orders(store, { consumer: CONSUMER });
  await worker().deliver(1, { key: 'idle' });
  for (const key of ['c', 'a', 'b']) {
    await worker({ handler: bad }).deliver(1, { key });
    await clock.advance(1_000);
  }
  const first = await list({ state: 'halted', pageSize: 2 });
  const second = await list({ state: 'halted', pageSize: 2, pageToken: first.nextPageToken ?? '' });
  assert.deepEqual(
    [...first.streams, ...second.streams].map(
      ({ key, poison }) => `${key} ${poison?.number} ${poison?.code}`,
    ),
    ['c 1 BAD', 'a 1 BAD', 'b 1 BAD'],
  );
  assert.deepEqual([second.nextPageToken, (await list()).streams.length], [undefined, 4]);
  assert.equal(await codesOf(list({ pageSize: 0 })), 'INVALID_PAGE_SIZE');
});

test('skip gives up missing numbers, as far as it is told', async () => {
  const { worker, store, runs, state } = bench();
  const { skip } = orders(store, { consumer: CONSUMER });
  for (const number of [1, 5]) await worker().deliver(number);
  assert.equal(await skip('k', 3), true);
  assert.deepEqual([state().last, state().skipped], [3, [{ from: 2, to: 3 }]]);
  assert.deepEqual([await skip('k', 3), await skip('k', 1)], [true, false]);
  assert.equal(await codesOf(skip('k', 5)), 'NUMBER_HELD');
  assert.equal(await skip('k', 4), true);
  await worker().sweep();
  assert.deepEqual([runs, state().last], [['1:a', '5:a'], 5]);
  assert.equal(await codesOf(skip('k', 200_000)), 'SEQUENCE_TOO_FAR_AHEAD');
  assert.equal(await codesOf(skip('k', 1.5)), 'SEQUENCE_TOO_FAR_AHEAD');
  assert.equal(await codesOf(skip('nobody', 1)), 'STREAM_UNKNOWN');
});

test('skip gives poison up only with its dead letter', async () => {
  const { worker, store, state, heldNumbers, runs } = bench();
  for (const number of [1, 2]) await worker({ handler: bad }).deliver(number);
  const without = orders(store, { consumer: CONSUMER });
  assert.equal(await codesOf(without.skip('k', 1)), 'NO_DEAD_LETTERS');
  assert.equal(await codesOf(without.skip('k', 2)), 'NUMBER_HELD');
  const { letters, deadLetters } = graveyard(1);
  const { skip } = orders(store, { consumer: CONSUMER, deadLetters });
  assert.equal(await codesOf(skip('k', 1)), 'DEAD_LETTER_UNPUBLISHED');
  assert.deepEqual([state().last, heldNumbers()], [0, [1, 2]]);
  assert.equal(await skip('k', 1), true);
  assert.deepEqual([letters, state().last, state().halted, heldNumbers()], [['1 BAD'], 1, null, [2]]);
  await worker().sweep();
  assert.deepEqual([state().last, runs], [2, ['1:a', '2:a']]);
});

test('skip leaves a stream alone that somebody works on; resume of an unknown one is refused', async () => {
  const { clock, worker, store } = bench();
  const { skip, resume } = orders(store, { consumer: CONSUMER });
  const running = worker({
    handler: async () => {
      await sleep(clock, 1_000);
      return ack();
    },
  }).deliver(1);
  await clock.advance(100);
  assert.equal(await codesOf(skip('k', 1)), 'STREAM_BUSY');
  assert.equal(await codesOf(resume('nobody')), 'STREAM_UNKNOWN');
  await clock.until(running);
});
