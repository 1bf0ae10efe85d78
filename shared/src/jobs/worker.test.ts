import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PermanentError, storeUnavailable, TransientError } from '../errors.ts';
import type { LogFields } from '../log.ts';
import { ack, deadLetter, retry } from '../outcome.ts';
import { virtualClock } from '../testing/index.ts';
import type { Job, NewJob } from './job.ts';
import type { RoleLimits } from './limits.ts';
import { memoryJobs, type MemoryJobTransaction } from './memory.ts';
import { memoryJobTable } from './memory-table.ts';
import { complete, type JobContext, type JobOutcome } from './outcome.ts';
import { worker } from './worker.ts';
import type { WorkerOptions } from './worker-options.ts';

type Handle = (job: Job, context: JobContext<MemoryJobTransaction>) => Promise<JobOutcome>;

const never = (): Promise<never> => new Promise(() => {});
const LEASE = { lease: '30s', runTimeout: '10m', retry: { min: '10s', max: '1m' } } as const;

/** One worker of role `r` over the memory store, and what it did. */
function world(handle: Handle, options: WorkerOptions = {}, limits?: RoleLimits) {
  const clock = virtualClock();
  const table = memoryJobTable();
  const lost = new Set<string>();
  const sent: string[] = [];
  /** `lost` names requests whose reply is lost, once. */
  const network = async <Value>(request: string, send: () => Promise<Value>): Promise<Value> => {
    sent.push(request);
    const value = await send();
    if (lost.delete(request)) throw storeUnavailable(`${request}: the reply was lost`);
    return value;
  };
  const store = memoryJobs({ clock, table, network });
  const other = memoryJobs({ clock, table });
  const lines: (LogFields & { event?: string })[] = [];
  const line = (_text: string, fields: LogFields = {}): void => void lines.push(fields);
  const log = { info: line, warn: line, error: line };
  const running = worker(
    store,
    { r: { ...LEASE, ...(limits !== undefined && { limits }), handle: { k: handle } } },
    {
      clock,
      log,
      random: () => 0.5,
      drainOnSigterm: false,
      ...options,
    },
  );
  const enqueue = (...jobs: readonly Partial<NewJob>[]) =>
    other.transact((tx) =>
      other.write(
        tx,
        jobs.map((job) => ({ role: 'r', kind: 'k', payload: 1, ...job })),
      ),
    );
  const ends = (): string[] => table.log.map(({ state, attempts }) => `${state} ${attempts}`);
  const events = (): unknown[] => lines.map(({ event }) => event);
  return { clock, table, store, other, running, enqueue, ends, events, lost, sent };
}

test('jobs are run once each, and no more at once than there are slots', async () => {
  let [atOnce, most, runs] = [0, 0, 0];
  const { clock, running, enqueue, ends } = world(
    async () => {
      [atOnce, runs] = [atOnce + 1, runs + 1];
      most = Math.max(most, atOnce);
      await new Promise<void>((resolve) => clock.after(2_000, resolve));
      atOnce -= 1;
      return ack();
    },
    { concurrency: 3 },
  );
  await enqueue(...Array.from({ length: 10 }, () => ({})));
  await clock.advance(60_000);
  assert.deepEqual([runs, most, ends().length], [10, 3, 10]);
  await running.stop();
});

test('a failure is tried again after its backoff, and is dead after the last attempt', async () => {
  const at: number[] = [];
  const { clock, table, enqueue, ends, events, running } = world(async () => {
    at.push(clock.monotonic());
    throw new TransientError('BROKEN', 'it broke');
  });
  await enqueue({});
  await clock.advance(120_000);
  const pauses = at.slice(1).map((time, index) => time - (at[index] ?? 0));
  // Three quarters of 10 s and of 20 s, and at most 2.4 s until a worker sees it.
  assert.equal(pauses.length, 2);
  assert.ok(
    pauses[0]! >= 7_500 && pauses[0]! <= 9_900 && pauses[1]! >= 15_000 && pauses[1]! <= 17_400,
    pauses.join(' '),
  );
  assert.deepEqual(
    [ends(), [...table.dead.values()].map(({ reason }) => reason.code)],
    [['dead 3'], ['BROKEN']],
  );
  assert.deepEqual(events(), ['job_failed', 'job_failed', 'job_dead']);
  await running.stop();
});

test('what can never succeed is dead at once, and what is not the fault of the job costs no attempt', async () => {
  const outcomes: Readonly<Record<string, () => Promise<JobOutcome>>> = {
    permanent: () => Promise.reject(new PermanentError('NEVER', 'no')),
    given: async () => deadLetter(new TransientError('GIVEN_UP', 'no')),
    away: async () => retry(storeUnavailable('the database of the handler is away')),
  };
  const { clock, table, enqueue, running } = world((job) => outcomes[job.payload as string]!());
  await enqueue({ payload: 'permanent' }, { payload: 'given' }, { payload: 'away' }, { kind: 'unknown' });
  await clock.advance(600_000);
  assert.deepEqual(
    [...table.dead.values()].map(({ record, reason }) => [record.attempts, reason.code]),
    [
      [1, 'NEVER'],
      [1, 'GIVEN_UP'],
    ],
  );
  assert.deepEqual(
    [...table.jobs.values()].map(({ attempts, error }) => [attempts, error?.code]),
    [
      [0, 'STORE_UNAVAILABLE'],
      [0, 'HANDLER_MISSING'],
    ],
  );
  await running.stop();
});

test('a job commits its writes, its messages and its next job with its end', async () => {
  const { clock, table, store, enqueue, ends, running } = world(async (job, context) => {
    if (job.payload === 'next') return ack();
    (await context.transaction()).set('scene', 42);
    const publish = [{ topic: 't', data: Buffer.from('x'), attributes: {} }];
    return complete({ publish, enqueue: [{ role: 'r', kind: 'k', payload: 'next' }] });
  });
  await enqueue({});
  await clock.advance(5_000);
  assert.deepEqual([store.peek('scene'), store.rows().length, ends()], [42, 1, ['done 1', 'done 1']]);
  assert.equal(table.jobs.size, 0);
  await running.stop();
});

test('what fails leaves nothing of what it wrote', async () => {
  const { clock, store, enqueue, ends, running } = world(async (job, context) => {
    (await context.transaction()).set('scene', job.attempt);
    return job.attempt === 1 ? retry(new TransientError('BROKEN', 'no')) : ack();
  });
  await enqueue({});
  await clock.advance(1_000);
  assert.equal(store.peek('scene'), undefined);
  await clock.advance(20_000);
  assert.deepEqual([store.peek('scene'), ends()], [2, ['done 2']]);
  await running.stop();
});

test('a next job whose key belongs to another one makes the job dead', async () => {
  const { clock, table, enqueue, running } = world(async () =>
    complete({ enqueue: [{ role: 'other', kind: 'k', payload: 2, key: 'a' }] }),
  );
  await enqueue({ role: 'other', key: 'a' }, {});
  await clock.advance(5_000);
  assert.deepEqual(
    [...table.dead.values()].map(({ reason }) => reason.code),
    ['KEY_CONFLICT'],
  );
  await running.stop();
});

test('T2: a claim whose reply is lost is worked once, without waiting for its lease', async () => {
  let runs = 0;
  const { clock, enqueue, ends, lost, running } = world(async () => {
    runs += 1;
    return ack();
  });
  await clock.advance(100);
  await enqueue({}, {});
  lost.add('exchange');
  await clock.advance(5_000);
  assert.deepEqual([runs, ends()], [2, ['done 1', 'done 1']]);
  await running.stop();
});

test('T9: after the deadline the signal is aborted, the token is refused, and so is the commit', async () => {
  const seen: unknown[] = [];
  const { clock, store, enqueue, running } = world(async (_job, context) => {
    const tx = await context.transaction();
    tx.set('late', true);
    const before = [context.signal.aborted, context.fencingToken !== ''];
    // The store answers no renewal: the deadline passes.
    isAway = true;
    await new Promise<void>((resolve) => clock.after(31_000, resolve));
    seen.push(...before, context.signal.aborted);
    assert.throws(() => context.fencingToken, { code: 'LEASE_LOST' });
    await assert.rejects(context.transaction(), { code: 'LEASE_LOST' });
    seen.push('refused');
    return ack();
  });
  let isAway = false;
  const { exchange } = store;
  Object.assign(store, {
    exchange: (...values: Parameters<typeof exchange>) =>
      isAway ? Promise.reject(storeUnavailable('away')) : exchange(...values),
  });
  await enqueue({});
  await clock.advance(40_000);
  assert.deepEqual([seen, store.peek('late')], [[false, true, true, 'refused'], undefined]);
  const stopping = running.stop();
  await clock.advance(60_000);
  await stopping;
});

test('T9: a machine that was suspended for its lease commits nothing for the run, and the job is run again', async () => {
  const seen: unknown[] = [];
  const { clock, store, enqueue, ends, running } = world(async (_job, context) => {
    const tx = await context.transaction();
    tx.set('from', seen.length);
    // The monotonic clock and its timers stand still meanwhile.
    if (seen.length === 0) clock.suspend(30_000);
    seen.push(context.signal.aborted);
    return ack();
  });
  await enqueue({});
  await clock.advance(60_000);
  assert.deepEqual([seen, store.peek('from'), ends()], [[true, false], 1, ['done 2']]);
  await running.stop();
});

test('T15: a completion whose reply is lost is sent again and changes nothing more', async () => {
  const { clock, table, enqueue, ends, lost, events, running } = world(async () => {
    lost.add('exchange');
    return ack();
  });
  await enqueue({});
  await clock.advance(10_000);
  assert.deepEqual([ends(), table.jobs.size, events()], [['done 1'], 0, ['job_store_unavailable']]);
  await running.stop();
});

test('T15: a commit whose reply is lost counts, and its writes are made once', async () => {
  let runs = 0;
  const { clock, store, enqueue, ends, lost, running } = world(async (_job, context) => {
    runs += 1;
    (await context.transaction()).set('effects', runs);
    lost.add('commit');
    return ack();
  });
  await enqueue({});
  await clock.advance(120_000);
  assert.deepEqual([runs, store.peek('effects'), ends()], [1, 1, ['done 1']]);
  await running.stop();
});

test('T17: a cancellation aborts a running job within a third of its lease', async () => {
  const reasons: unknown[] = [];
  const { clock, table, other, enqueue, ends, running } = world(async (_job, { signal }) => {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    reasons.push(Reflect.get(Object(signal.reason), 'code'));
    throw signal.reason;
  });
  await enqueue({});
  await clock.advance(1_000);
  const [id] = [...table.jobs.keys()];
  assert.equal(await other.cancel(String(id)), 'requested');
  await clock.advance(11_000);
  assert.deepEqual([reasons, ends()], [['CANCELLED'], ['cancelled 1']]);
  await running.stop();
});

test('T19: without a listener a job is claimed with the next poll; with one, at once', async () => {
  const at: number[] = [];
  const { clock, other, enqueue, running } = world(async () => {
    at.push(clock.monotonic());
    return ack();
  });
  await clock.advance(10_050);
  await enqueue({});
  await clock.advance(1_300);
  assert.ok(at.length === 1 && at[0]! <= 11_350, at.join(' '));
  await clock.advance(150);
  const before = clock.monotonic();
  await enqueue({});
  await other.wake('another role');
  await other.wake('r');
  await clock.advance(0);
  assert.deepEqual(at.slice(1), [before]);
  await running.stop();
});

test('T21: a worker that is stopped claims no more, lets runs end in their grace, and releases the others', async () => {
  const ended: unknown[] = [];
  const { clock, table, enqueue, ends, running } = world(
    async (job, { signal }) => {
      const until = (milliseconds: number) =>
        new Promise<void>((resolve) => clock.after(milliseconds, resolve));
      if (job.payload === 'quick') await until(20_000);
      else if (job.payload === 'deaf') await never();
      else await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      ended.push(job.payload);
      if (job.payload === 'listening') throw signal.reason;
      return ack();
    },
    { concurrency: 3 },
  );
  await enqueue({ payload: 'quick' }, { payload: 'deaf' }, { payload: 'listening' });
  await clock.advance(5_000);
  const tokens = [...table.jobs.values()].map(({ token }) => token);
  await enqueue({ payload: 'new' });
  const stopping = running.stop();
  assert.equal(running.stop(), stopping);
  await clock.advance(24_000);
  assert.deepEqual([ended, ends()], [['quick'], ['done 1']]);
  await clock.until(stopping, 5_000);
  const left = [...table.jobs.values()];
  assert.deepEqual(
    left.map(({ payload, state, attempts, crashes }) => [payload, state, attempts, crashes]),
    [
      ['deaf', 'ready', 0, 0],
      ['listening', 'ready', 0, 0],
      ['new', 'ready', 0, 0],
    ],
  );
  assert.deepEqual(
    left.slice(0, 2).map(({ token }) => token),
    tokens.slice(1),
  );
});

test('T21: a second SIGTERM ends the grace', async (t) => {
  const { clock, table, enqueue, running } = world(never, { drainOnSigterm: true });
  // Without a listener of its own the test's process would be ended by the signal.
  const ignore = (): void => {};
  process.on('SIGTERM', ignore);
  t.after(() => void process.off('SIGTERM', ignore));
  await enqueue({});
  await clock.advance(1_500);
  process.emit('SIGTERM', 'SIGTERM');
  await clock.advance(5_000);
  assert.deepEqual(
    [...table.jobs.values()].map(({ state }) => state),
    ['running'],
  );
  process.emit('SIGTERM', 'SIGTERM');
  await clock.advance(1_500);
  assert.deepEqual(
    [...table.jobs.values()].map(({ state, attempts }) => [state, attempts]),
    [['ready', 0]],
  );
  await running.stop();
  assert.deepEqual(process.listeners('SIGTERM'), [ignore]);
});

test('T22: a run beyond its time is aborted and counted, and its slot is free even if the handler is deaf', async () => {
  let runs = 0;
  const { clock, table, enqueue, ends, running } = world((job) => {
    runs += 1;
    return job.payload === 'deaf' ? never() : Promise.resolve(ack());
  });
  await enqueue({ payload: 'deaf', maxAttempts: 1 });
  await clock.advance(5_000);
  await enqueue({ payload: 'next' });
  await clock.advance(594_000);
  assert.equal(runs, 1);
  await clock.advance(5_000);
  assert.deepEqual([runs, ends(), running.running()], [2, ['dead 1', 'done 1'], 0]);
  assert.deepEqual(
    [...table.dead.values()].map(({ reason }) => reason.code),
    ['RUN_TOO_LONG'],
  );
  await running.stop();
});

test('workers make one recurring job for each due time and run it, also where the store loses replies', async () => {
  const days: unknown[] = [];
  const recurring = {
    tick: { cron: '*/5 * * * *', role: 'r', kind: 'k', payload: (at: Date) => at.toISOString() },
  };
  const handle: Handle = async (job) => {
    days.push(job.payload);
    return ack();
  };
  const { clock, other, running, ends, lost, events } = world(handle, { recurring });
  const second = worker(
    other,
    { idle: { ...LEASE, handle: {} } },
    { clock, recurring, random: () => 0.9, drainOnSigterm: false },
  );
  await clock.advance(299_000);
  lost.add('recur').add('recurrences');
  assert.deepEqual(days, []);
  await clock.advance(300_000);
  assert.deepEqual(days, ['2030-01-01T00:05:00.000Z']);
  await clock.advance(303_000);
  assert.deepEqual([days.length, ends()], [3, ['done 1', 'done 1', 'done 1']]);
  assert.ok(events().includes('job_recurrence_failed'));
  await Promise.all([running.stop(), second.stop()]);
});

test('a payload that throws holds up its own recurrence alone, and is asked again', async () => {
  let isBroken = false;
  const made: unknown[] = [];
  const brittle = (at: Date): string => {
    if (isBroken) throw new Error('no such day');
    return `brittle ${at.toISOString()}`;
  };
  const base = { cron: '*/5 * * * *', role: 'r', kind: 'k' };
  const recurring = {
    a: { ...base, payload: brittle },
    b: { ...base, payload: (at: Date) => `b ${at.toISOString()}` },
  };
  const { clock, running, events } = world(
    async (job) => {
      made.push(job.payload);
      return ack();
    },
    { recurring },
  );
  isBroken = true;
  await clock.advance(330_000);
  assert.deepEqual(made, ['b 2030-01-01T00:05:00.000Z']);
  assert.ok(events().filter((event) => event === 'job_recurrence_failed').length <= 8, 'with pauses');
  isBroken = false;
  await clock.advance(15_000);
  assert.deepEqual(made[1], 'brittle 2030-01-01T00:05:00.000Z');
  await running.stop();
});

test('T35: workers of one role keep to its limit together, and go on at once when a run has ended', async () => {
  let [atOnce, most] = [0, 0];
  const handle: Handle = async () => {
    atOnce += 1;
    most = Math.max(most, atOnce);
    await new Promise<void>((resolve) => clock.after(20, resolve));
    atOnce -= 1;
    return ack();
  };
  const role = { ...LEASE, limits: { running: 2 }, handle: { k: handle } };
  const { clock, other, running, enqueue, ends } = world(handle, { concurrency: 5 }, role.limits);
  const options = { clock, random: () => 0.5, drainOnSigterm: false, concurrency: 5 };
  const second = worker(other, { r: role }, options);
  await enqueue(...Array.from({ length: 30 }, () => ({})));
  await clock.advance(3_000);
  assert.deepEqual([most, ends().length], [2, 30], 'not one with each poll');
  await Promise.all([running.stop(), second.stop()]);
});

test('a worker refuses options that it does not have', () => {
  const store = memoryJobs();
  const role = { runTimeout: '1m', handle: {} } as const;
  for (const [roles, options, says] of [
    [{}, {}, /^roles is an object; accepted/],
    [{ r: { ...role, runTimeout: undefined } }, {}, /^roles\.r\.runTimeout is undefined/],
    [{ r: { ...role, lease: '10ms' } }, {}, /^roles\.r\.lease is "10ms"; accepted: at least 1s/],
    [{ r: { ...role, handle: { k: 1 } } }, {}, /^roles\.r\.handle\.k is 1/],
    [{ r: { ...role, retri: {} } }, {}, /^roles\.r\.retri is no option; accepted: retry/],
    [{ 'no role': role }, {}, /^the name of a role is "no role"/],
    [{ r: { ...role, limits: { running: 0 } } }, {}, /^roles\.r\.limits\.running is 0/],
    [{ r: role }, { concurrency: 0 }, /^concurrency is 0/],
    [
      { r: role },
      { recurring: { x: { cron: 'x', role: 'r', kind: 'k', payload: 1 } } },
      /^recurring\.x\.cron is "x"/,
    ],
  ] as const) {
    assert.throws(() => worker(store, roles as never, options as WorkerOptions), {
      code: 'INVALID_OPTION',
      message: says,
    });
  }
});
