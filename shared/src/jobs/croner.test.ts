import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cronTimes } from './croner.ts';

/** Due times of an expression from a moment on, and the same ones read backwards. */
function timesOf(cron: string, timeZone: string, from: string, count: number): readonly string[] {
  const { after, before } = cronTimes('r', cron, timeZone);
  const found: number[] = [];
  for (let at = after(Date.parse(from)); at !== undefined && found.length < count; at = after(at))
    found.push(at);
  const back: number[] = [];
  for (let at = before((found.at(-1) ?? 0) + 1); at !== undefined && back.length < count; at = before(at))
    back.push(at);
  assert.deepEqual(back.toReversed(), found, 'backwards they are the same');
  return found.map((at) => new Date(at).toISOString().slice(0, 16));
}

/** Warsaw: 2:00 becomes 3:00 on 31 March 2030, and 3:00 becomes 2:00 on 27 October 2030, both at 1:00 UTC. */
const warsaw = (cron: string, from: string, count: number) => timesOf(cron, 'Europe/Warsaw', from, count);

test('a time of day that is skipped is the first moment after the gap', () => {
  assert.deepEqual(warsaw('30 2 * * *', '2030-03-30T00:00Z', 3), [
    '2030-03-30T01:30',
    '2030-03-31T01:00',
    '2030-04-01T00:30',
  ]);
});

test('two times of day that meet after the gap are one due time', () => {
  const both = ['2030-03-31T01:00', '2030-04-01T00:00', '2030-04-01T01:00'];
  assert.deepEqual(warsaw('0 2,3 * * *', '2030-03-30T12:00Z', 3), both);
});

test('a time of day that is repeated is the first one', () => {
  assert.deepEqual(warsaw('30 2 * * *', '2030-10-26T12:00Z', 2), ['2030-10-27T00:30', '2030-10-28T01:30']);
  const listed = ['2030-10-26T23:30', '2030-10-27T00:30', '2030-10-27T02:30', '2030-10-27T03:30'];
  assert.deepEqual(warsaw('30 1-4 * * *', '2030-10-26T12:00Z', 4), listed);
});

test('an interval goes on by elapsed time through the gap and through the repeated hour', () => {
  const gap = ['2030-03-31T00:30', '2030-03-31T01:00', '2030-03-31T01:30', '2030-03-31T02:00'];
  assert.deepEqual(warsaw('*/30 * * * *', '2030-03-31T00:20Z', 4), gap);
  const repeated = ['2030-10-27T00:00', '2030-10-27T00:30', '2030-10-27T01:00', '2030-10-27T01:30'];
  assert.deepEqual(warsaw('*/30 * * * *', '2030-10-26T23:50Z', 4), repeated);
  assert.deepEqual(warsaw('*/30 2 * * *', '2030-10-26T12:00Z', 5), [...repeated, '2030-10-28T01:00']);
  assert.deepEqual(warsaw('*/30 2 * * *', '2030-03-30T12:00Z', 1), ['2030-04-01T00:00'], 'none in the gap');
});

test('a gap of half an hour, and one at midnight', () => {
  const half = ['2030-10-04T15:45', '2030-10-05T15:30', '2030-10-06T15:15'];
  assert.deepEqual(timesOf('15 2 * * *', 'Australia/Lord_Howe', '2030-10-04T00:00Z', 3), half);
  const midnight = ['2018-11-03T03:00', '2018-11-04T03:00', '2018-11-05T02:00'];
  assert.deepEqual(timesOf('0 0 * * *', 'America/Sao_Paulo', '2018-11-03T00:00Z', 3), midnight);
});

test('six fields begin with seconds', () => {
  const { after } = cronTimes('r', '*/20 * * * * *', 'UTC');
  assert.deepEqual([after(0), after(20_000), after(20_001)], [20_000, 40_000, 40_000]);
});

test('what is no expression, never fires or has no time zone is refused with its path', () => {
  const cases = [
    ['nonsense', 'UTC', /^recurring\.x\.cron is "nonsense"; accepted: a cron expression/],
    ['60 * * * *', 'UTC', /^recurring\.x\.cron/],
    ['0 0 30 2 *', 'UTC', /^recurring\.x\.cron is "0 0 30 2 \*"; accepted: an expression that ever fires/],
    ['0 0 31 4,6 *', 'UTC', /ever fires/],
    ['2030-01-01T00:00:00', 'UTC', /accepted: a cron expression/],
    ['0 0 0 1 1 * 2031', 'UTC', /accepted: a cron expression/],
    ['@reboot', 'UTC', /accepted: a cron expression/],
    ['0 3 * * *', 'Mars/Olympus', /^recurring\.x\.timeZone is "Mars\/Olympus"/],
  ] as const;
  for (const [cron, timeZone, message] of cases) {
    assert.throws(() => cronTimes('recurring.x', cron, timeZone), { code: 'INVALID_OPTION', message });
  }
  cronTimes('r', '0 0 29 2 *', 'UTC');
  cronTimes('r', '@daily', 'Europe/Warsaw');
});
