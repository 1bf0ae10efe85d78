import assert from 'node:assert/strict';
import test from 'node:test';
import { ConfigError } from '../errors.ts';
import { checkWindows, type Windows } from './windows.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;
/** What the deploy module sets. */
const GOOD: Windows = {
  dedup: {},
  handlerTimeout: '60s',
  functionTimeout: '540s',
  subscription: {
    ackDeadlineMs: 10 * MINUTE,
    messageRetentionMs: 7 * DAY,
    maxDeliveryAttempts: 10,
    minimumBackoffMs: 10_000,
    maximumBackoffMs: 10 * MINUTE,
  },
  evictionPolicy: 'noeviction',
};
const codes = (windows: Windows): string[] => checkWindows(windows).map(({ code }) => code);
const within = (subscription: Windows['subscription']): Windows => ({
  ...GOOD,
  subscription: { ...GOOD.subscription, ...subscription },
});

test('windows that fit, and windows that are not known, are not mentioned', () => {
  assert.deepEqual(checkWindows(GOOD), []);
  assert.deepEqual(checkWindows({}), []);
  assert.deepEqual(checkWindows({ dedup: {} }), []);
});

test('each line says what, its value, the consequence and what to change', () => {
  const [problem] = checkWindows({ ...GOOD, dedup: { retention: '10m' } });
  assert.deepEqual(problem, {
    code: 'RETENTION_TOO_SHORT',
    text: 'retention is 10m, but the subscription keeps messages for 7d: one that comes back later than its record runs again; set retention to more than 7d',
  });
  for (const { text } of everything()) assert.doesNotMatch(text, /\n/);
});

const everything = () =>
  checkWindows({
    dedup: { retention: '1s', lease: '2s', minimumHandlerTime: '70s' },
    handlerTimeout: '60s',
    functionTimeout: '30s',
    subscription: { ackDeadlineMs: 10_000, maxDeliveryAttempts: 5 },
    evictionPolicy: 'allkeys-lru',
  });

test('a seek that brings back what has no record any more: by the topic’s retention, or by a snapshot', () => {
  assert.deepEqual(checkWindows(within({ topicRetentionMs: 31 * DAY })), [
    {
      code: 'SEEK_OUTLIVES_RECORDS',
      text: 'retention is 8d, but a seek can bring back messages of up to 31d (the topic keeps them): those whose record has ended run again; set retention to more than 31d, or seek no further back than 8d',
    },
  ]);
  assert.deepEqual(codes(within({ topicRetentionMs: 8 * DAY })), []);
  assert.deepEqual(codes({ ...within({ topicRetentionMs: 31 * DAY }), dedup: { retention: '31d' } }), []);
  const short = { ...GOOD, dedup: { retention: '1h' } } as const;
  const subscription = { ...GOOD.subscription, messageRetentionMs: 30 * MINUTE };
  assert.deepEqual(codes({ ...short, subscription }), []);
  const [problem, ...others] = checkWindows({
    ...short,
    subscription: { ...subscription, hasSnapshots: true },
  });
  assert.deepEqual([problem?.code, others], ['SEEK_OUTLIVES_RECORDS', []]);
  assert.match(problem?.text ?? '', /up to 7d \(there is a snapshot of the topic\)/);
  // What comes back without a seek is said once.
  const kept = within({ topicRetentionMs: 7 * DAY });
  assert.deepEqual(codes({ ...kept, dedup: { retention: '1h' } }), ['RETENTION_TOO_SHORT']);
  const { dedup: _, ...without } = within({ topicRetentionMs: 31 * DAY });
  assert.deepEqual(checkWindows(without), []);
});

test('everything at once is one line each', () => {
  assert.deepEqual(
    everything().map(({ code }) => code),
    [
      'RETENTION_TOO_SHORT',
      'LEASE_TOO_LONG',
      'NOTHING_STARTS',
      'FUNCTION_TIMEOUT_TOO_SHORT',
      'ACK_DEADLINE_TOO_SHORT',
      'DEAD_LETTERED_IN_PROGRESS',
      'DEAD_LETTERED_IN_OUTAGE',
      'RECORDS_EVICTED',
    ],
  );
});

test('B35: the retention is held against the subscription’s, and against the default where that is not known', () => {
  assert.deepEqual(codes({ dedup: { retention: '6d' } }), ['RETENTION_TOO_SHORT']);
  assert.deepEqual(codes(within({ messageRetentionMs: 31 * DAY })), ['RETENTION_TOO_SHORT']);
  assert.deepEqual(codes({ ...within({ messageRetentionMs: 10 * MINUTE }), dedup: { retention: '1h' } }), []);
  assert.deepEqual(codes({ handlerTimeout: '60s' }), [], 'without de-duplication there is no record');
});

test('B53: an ack deadline below the handler’s time is reported for push, and not for pull, where it is extended', () => {
  const short = within({ ackDeadlineMs: 10_000 });
  assert.ok(codes(short).includes('ACK_DEADLINE_TOO_SHORT'));
  assert.deepEqual(codes({ ...short, deliveryType: 'pull' }), []);
  const unknownHandler = { functionTimeout: '60s', subscription: { ackDeadlineMs: 10_000 } } as const;
  assert.deepEqual(codes(unknownHandler), ['ACK_DEADLINE_TOO_SHORT']);
});

test('attempts that run out while a message is only being worked on', () => {
  const slow = within({ ackDeadlineMs: 10_000, maxDeliveryAttempts: 5 });
  assert.ok(codes({ ...slow, handlerTimeout: '540s' }).includes('DEAD_LETTERED_IN_PROGRESS'));
  assert.ok(!codes(within({ maxDeliveryAttempts: 5 })).includes('DEAD_LETTERED_IN_PROGRESS'));
  const impatient = {
    ...within({ maxDeliveryAttempts: 5 }),
    dedup: { lease: '5m', waitBudget: '1s' },
  } as const;
  assert.ok(codes(impatient).includes('DEAD_LETTERED_IN_PROGRESS'));
});

test('attempts that run out in a short outage', () => {
  const { minimumBackoffMs: _none, ...atOnce } = GOOD.subscription ?? {};
  assert.deepEqual(codes({ ...GOOD, subscription: atOnce }), ['DEAD_LETTERED_IN_OUTAGE']);
  assert.deepEqual(codes(within({ maxDeliveryAttempts: 5 })), [], '10 + 20 + 40 + 80 s');
});

test('a delivery with hardly any time left to wait', () => {
  assert.deepEqual(codes({ dedup: { minimumHandlerTime: '9s' }, handlerTimeout: '10s' }), [
    'NO_TIME_TO_WAIT',
  ]);
  assert.deepEqual(
    codes({ dedup: { minimumHandlerTime: '9s', waitBudget: '0s' }, handlerTimeout: '10s' }),
    [],
  );
});

test('B44: any policy that evicts is reported', () => {
  assert.deepEqual(codes({ evictionPolicy: 'volatile-lru' }), ['RECORDS_EVICTED']);
});

test('a value that is not a duration is refused', () => {
  assert.throws(() => checkWindows({ handlerTimeout: 'soon' as never }), ConfigError);
  assert.throws(() => checkWindows({ dedup: { lease: '1.5s' } }), ConfigError);
});
