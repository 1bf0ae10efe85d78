import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missingOf } from './missing.ts';
import type { Published } from './observed.ts';
import { traceAll } from './trace.ts';

const step = (number: number): Published => ({
  event: {
    line: number,
    topic: 'fifo-in',
    publisher: 'p1',
    afterMs: 0,
    data: Buffer.from(`${number}`),
    attributes: { sequence: String(number), sequenceKey: 'k' },
  },
  messageId: `m${number}`,
});
const missing = (published: Published[], deadLetters: Published[] = []) => {
  const deadLettered = deadLetters.map(({ event }) => ({
    messageId: 'd',
    data: event.data,
    attributes: event.attributes,
  }));
  return missingOf(traceAll({ published, arrivals: [], deadLetters: deadLettered }).traces);
};

test('what waits for a number that is in the file is worth waiting for', () => {
  assert.deepEqual(
    missing([step(2), step(1)]).map(({ hopeless }) => hopeless),
    [false, false],
  );
});

test('what is behind a number that the file never publishes is hopeless, and the number is named', () => {
  const [one, three] = missing([step(1), step(3)]);
  assert.equal(one?.hopeless, false);
  assert.equal(three?.hopeless, true);
  assert.match(three?.text ?? '', /held, key "k" waits for number 2, which the file does not publish/);
});

test('a dead-lettered number is a gap for the ones behind it', () => {
  const two = step(2);
  const texts = missing([step(1), two, step(3)], [two]).map(({ hopeless }) => hopeless);
  assert.deepEqual(texts, [false, true]);
});

test('a stream that does not begin at 1 waits for 1', () => {
  assert.match(missing([step(5)])[0]?.text ?? '', /waits for number 1/);
});
