import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Arrival, Published } from './observed.ts';
import { AFTER_CRASH_MS, askedDelayMs, type Moment, PATIENCE_MS, SETTLE_MS, waitingFor } from './waiting.ts';

const published: Published = {
  event: { line: 1, topic: 'dedup-in', publisher: 'p1', afterMs: 0, data: Buffer.from('x'), attributes: {} },
  messageId: '7',
};
const arrival: Arrival = {
  topic: 'dedup-out',
  messageId: 'a',
  data: Buffer.from('x'),
  attributes: { dedupId: 'projects/p/subscriptions/s/7' },
  atMs: 0,
  effect: true,
};
const quiet: Moment = {
  nowMs: 100_000,
  publishingDone: true,
  lastSeenMs: 100_000 - SETTLE_MS,
  servingSinceMs: 100_000 - AFTER_CRASH_MS,
  lastDueMs: 100_000 - SETTLE_MS,
};
const look = (arrivals: Arrival[], change: Partial<Moment> = {}) =>
  waitingFor({ published: [published], arrivals, deadLetters: [] }, { ...quiet, ...change });

test('is over when everything has arrived and nothing more does', () => {
  assert.deepEqual(look([arrival]), { over: true, missing: 0 });
});

test('goes on while something is missing, but not beyond its patience', () => {
  assert.deepEqual(look([]), { over: false, missing: 1 });
  const past = quiet.nowMs - PATIENCE_MS;
  assert.equal(look([], { lastDueMs: past, servingSinceMs: past }).over, true);
  assert.equal(look([], { lastDueMs: past, servingSinceMs: past + 1 }).over, false);
});

test('goes on while more may come', () => {
  const { nowMs } = quiet;
  assert.equal(look([arrival], { publishingDone: false }).over, false);
  assert.equal(look([arrival], { lastSeenMs: nowMs - SETTLE_MS + 1 }).over, false);
  assert.equal(look([arrival], { servingSinceMs: nowMs - AFTER_CRASH_MS + 1 }).over, false);
  assert.equal(look([arrival], { lastDueMs: nowMs }).over, false);
  const { servingSinceMs: _, ...killed } = quiet;
  assert.equal(
    waitingFor({ published: [published], arrivals: [arrival], deadLetters: [] }, killed).over,
    false,
  );
});

test('does not wait for what is held behind a number that the file never publishes', () => {
  const attributes = { sequence: '2', sequenceKey: 'k' };
  const held = { ...published, event: { ...published.event, topic: 'fifo-in', attributes } };
  const answer = waitingFor({ published: [held], arrivals: [], deadLetters: [] }, quiet);
  assert.deepEqual(answer, { over: true, missing: 0 });
});

test('reads how long a message asks to wait, and takes nonsense for nothing', () => {
  assert.equal(askedDelayMs({ delay: '3' }, 0), 3_000);
  assert.equal(askedDelayMs({ deliverAt: '1970-01-01T00:00:05Z' }, 1_000), 4_000);
  assert.equal(askedDelayMs({ deliverAt: '1970-01-01T00:00:05Z' }, 9_000), 0);
  for (const delay of ['soon', '-1', '', '1e400']) assert.equal(askedDelayMs({ delay }, 0), 0);
  assert.equal(askedDelayMs({}, 0), 0);
});
