import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { backoffMs, choose, claim, type JobRecord, rankOf, settle, tokenAfter } from './decide.ts';
import { checkJobs, type NewJob, type Priority } from './job.ts';

const record = (change: Partial<JobRecord>): JobRecord => ({
  id: 1,
  role: 'r',
  kind: 'k',
  payload: null,
  key: undefined,
  limitKey: undefined,
  state: 'ready',
  priority: 5,
  runAtMs: 0,
  attempts: 0,
  crashes: 0,
  maxAttempts: 3,
  token: 0,
  owner: undefined,
  call: undefined,
  leaseUntilMs: 0,
  claimedMs: 0,
  cancelAsked: false,
  error: undefined,
  createdMs: 0,
  ...change,
});
const QUERY = { roles: [{ role: 'r', leaseMs: 1 }], limit: 3, suspect: true, ageingMs: 60_000 };

test('T11: a token is above each one that was given, also after the last claims were lost', () => {
  const claimed = claim(record({}), { owner: 'a', call: 1, leaseMs: 1 }, 1_893_456_000_000);
  const again = claim(record({}), { owner: 'b', call: 1, leaseMs: 1 }, 1_893_456_000_001);
  assert.ok(again.token > claimed.token, 'the record is as it was before the claim that is lost');
  assert.equal(tokenAfter(claimed.token, 0), claimed.token + 1, 'a clock that was set back');
  assert.ok(Number.isSafeInteger(tokenAfter(0, Date.UTC(2250, 0, 1))));
});

test('T27: the head of a level passes each job above it that became ready its ageing later', () => {
  const arbitrary = fc.record({
    low: fc.integer({ min: 0, max: 8 }),
    above: fc.integer({ min: 1, max: 9 }),
    laterMs: fc.integer({ min: 0, max: 1_000_000 }),
    ageingMs: fc.constantFrom(1_000, 60_000, Infinity),
  });
  fc.assert(
    fc.property(arbitrary, ({ low, above, laterMs, ageingMs }) => {
      const levels = Math.min(above, 9 - low);
      const head = record({ id: 1, priority: low as Priority });
      const high = record({ id: 2, priority: (low + levels) as Priority, runAtMs: laterMs });
      const [first] = choose([high, head], { ...QUERY, ageingMs });
      if (laterMs > levels * ageingMs) assert.equal(first, head);
      if (laterMs < levels * ageingMs) assert.equal(first, high);
      assert.equal(rankOf(head, ageingMs) < rankOf(high, ageingMs), first === head);
    }),
  );
});

test('T10: one suspect at most, in its turn or where there is room', () => {
  const ready = [1, 2, 3, 4].map((id) => record({ id, runAtMs: 100 }));
  const suspects = [5, 6].map((id) => record({ id, crashes: 1, runAtMs: 200 }));
  const ids = (records: readonly JobRecord[], change = {}): number[] =>
    choose(records, { ...QUERY, ...change }).map(({ id }) => id);
  assert.deepEqual(ids([...suspects, ...ready]), [1, 2, 3]);
  assert.deepEqual(ids([...suspects, ...ready], { limit: 5 }), [5, 1, 2, 3, 4]);
  assert.deepEqual(ids([...suspects, ...ready], { limit: 5, suspect: false }), [1, 2, 3, 4]);
  const old = suspects.map((suspect) => ({ ...suspect, runAtMs: 50 }));
  assert.deepEqual(ids([...ready, ...old]), [5, 1, 2]);
  assert.deepEqual(ids(suspects, { limit: 1 }), [5]);
});

test('a backoff doubles up to its most, and differs by chance by up to half', () => {
  const backoff = { minMs: 1_000, maxMs: 60_000 };
  assert.deepEqual(
    [1, 2, 3, 7, 500].map((attempt) => backoffMs(attempt, backoff, 0)),
    [1_000, 2_000, 4_000, 60_000, 60_000],
  );
  assert.equal(backoffMs(1, backoff, 1), 500);
});

test('a run that failed after its cancellation was asked for is cancelled, whatever its attempts', () => {
  const running = record({ state: 'running', attempts: 3, token: 7, cancelAsked: true });
  const held = { id: '1', token: '7' };
  const failed = { kind: 'failed', error: { code: 'C', text: 't' }, delayMs: 1, counts: true } as const;
  for (const ending of [failed, { kind: 'released' } as const]) {
    assert.equal(
      settle(running, held, ending, 0)?.kind === 'ended' && settle(running, held, ending, 0)?.record.id,
      1,
    );
  }
});

test('a payload is refused for U+0000 and half a surrogate pair, and not for a text that spells one', () => {
  const payloadOf = (payload: NewJob['payload']) => checkJobs([{ role: 'r', kind: 'k', payload }]);
  for (const bad of ['\0', '\\\0', '\ud800', { '\udfff': 1 }]) {
    assert.throws(() => payloadOf(bad), { code: 'INVALID_JOB' });
  }
  for (const good of ['\\u0000', '\\\\u0000', '\\ud800', '🚀', { '\\u0000': [] }]) payloadOf(good);
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  assert.throws(() => payloadOf(circle as never), { code: 'INVALID_JOB' });
});

test('what is no job is refused with its path', () => {
  const job = { role: 'r', kind: 'k', payload: 1 };
  for (const [change, says] of [
    [{ prio: 1 }, /^jobs\[1\]\.prio is no part of a job/],
    [{ at: new Date(NaN) }, /^jobs\[1\]\.at is/],
    [{ at: new Date(), after: '1s' }, /one of after and at/],
    [{ maxAttempts: 0 }, /^jobs\[1\]\.maxAttempts is 0; accepted: 1 to 1000/],
    [{ priority: 5.5 }, /^jobs\[1\]\.priority is 5.5/],
  ] as const) {
    assert.throws(() => checkJobs([job, { ...job, ...change } as NewJob]), {
      code: 'INVALID_JOB',
      message: says,
    });
  }
});
