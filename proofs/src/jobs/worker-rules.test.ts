/** Rules of a worker whose process stalls, or whose clock is wrong. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Clock } from '../../../shared/src/clock.ts';
import { storeUnavailable, TransientError } from '../../../shared/src/errors.ts';
import type { LogFields } from '../../../shared/src/log.ts';
import { ack } from '../../../shared/src/outcome.ts';
import type { Job } from '../../../shared/src/jobs/job.ts';
import { memoryJobs, type MemoryJobTransaction } from '../../../shared/src/jobs/memory.ts';
import { memoryJobTable } from '../../../shared/src/jobs/memory-table.ts';
import type { JobContext, JobOutcome } from '../../../shared/src/jobs/outcome.ts';
import { worker } from '../../../shared/src/jobs/worker.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import { atCalls, type Fault } from '../engine/faults.ts';
import { startProcess } from '../engine/process.ts';

type Handle = (job: Job, context: JobContext<MemoryJobTransaction>) => Promise<JobOutcome>;
type Parts = Readonly<{
  handle: Handle;
  faults?: Readonly<Record<string, Fault>>;
  /** How wrong the wall clock of the process is. */
  wrongMs?: number;
  concurrency?: number;
}>;

function world() {
  const clock = virtualClock();
  const table = memoryJobTable();
  const store = memoryJobs({ clock, table });
  const events: unknown[] = [];
  const start = ({ handle, faults = {}, wrongMs = 0, concurrency = 1 }: Parts) => {
    const process = startProcess(clock, {
      lost: (_request, how) => storeUnavailable(how),
      faultOf: atCalls(faults),
    });
    const own: Clock = { ...process.clock, now: () => clock.now() + wrongMs };
    const line = (_text: string, { event }: LogFields = {}): void => void events.push(event);
    const roles = { r: { runTimeout: '10m', retry: { min: '10s' }, handle: { k: handle } } } as const;
    const running = worker(memoryJobs({ clock, table, network: process.call }), roles, {
      clock: own,
      log: { info: line, warn: line, error: line },
      random: () => 0.5,
      drainOnSigterm: false,
      concurrency,
    });
    return { process, running };
  };
  const enqueue = (payload: string, maxAttempts = 3) =>
    store.transact((tx) => store.write(tx, [{ role: 'r', kind: 'k', payload, maxAttempts }]));
  const ends = (): string[] =>
    table.log.map(({ state, attempts, crashes }) => `${state}, attempt ${attempts}, ${crashes} crashes`);
  return { clock, table, events, start, enqueue, ends };
}

test('T3: a claim whose reply is read after its lease is not started, and its attempt is given back', async () => {
  const { clock, table, start, enqueue } = world();
  const starts: number[] = [];
  const handle: Handle = async (job) => {
    starts.push(job.attempt, Math.round(clock.monotonic()));
    return ack();
  };
  await enqueue('x');
  const { process } = start({ handle, faults: { 'exchange 1': { kind: 'none', afterMs: 29_000 } } });
  // Another one would take it over: it is released before that.
  await clock.advance(28_000);
  assert.equal([...table.jobs.values()][0]?.state, 'running');
  await clock.advance(3_000);
  assert.deepEqual(starts, [1, 30_000], 'released, and claimed anew with its first attempt');
  process.crash();
});

test('T4: the deadline of a run counts from the sending of its claim, however slow the reply', async () => {
  const { clock, start, enqueue } = world();
  const aborted: number[] = [];
  const handle: Handle = (_job, { signal }) =>
    new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        aborted.push(clock.monotonic());
        resolve(ack());
      });
    });
  await enqueue('x');
  // The reply takes 15 s, and every call after it is lost.
  const lost = Object.fromEntries(
    Array.from({ length: 50 }, (_, n): [string, Fault] => [`exchange ${n + 2}`, { kind: 'refused' }]),
  );
  start({ handle, faults: { 'exchange 1': { kind: 'none', afterMs: 15_000 }, ...lost } });
  await clock.advance(40_000);
  assert.deepEqual(aborted, [30_000]);
});

test('T5: a worker whose clock is a minute off, either way, changes no lease and no time of a next run', async () => {
  for (const wrongMs of [-60_000, 60_000]) {
    const { clock, start, enqueue, ends } = world();
    const starts: number[] = [];
    const handle: Handle = async (job) => {
      starts.push(clock.monotonic());
      if (job.attempt === 1) throw new TransientError('BROKEN', 'it broke');
      await new Promise<void>((resolve) => clock.after(100_000, resolve));
      return ack();
    };
    await enqueue('x');
    start({ handle, wrongMs });
    await clock.advance(5_000);
    start({ handle });
    await clock.advance(200_000);
    const pauseMs = (starts[1] ?? 0) - (starts[0] ?? 0);
    assert.ok(starts.length === 2 && pauseMs >= 7_500 && pauseMs <= 10_000, starts.join(' '));
    assert.deepEqual(ends(), ['done, attempt 2, 0 crashes']);
  }
});

test('T10: a poison job is dead after three processes, and each innocent job beside it is done', async () => {
  const { clock, start, enqueue, ends } = world();
  const seat = (): void => {
    const { process } = start({
      concurrency: 10,
      async handle(job) {
        const isPoison = job.payload === 'poison';
        await new Promise<void>((resolve) => process.clock.after(isPoison ? 5_000 : 6_000, resolve));
        if (!isPoison) return ack();
        process.crash();
        clock.after(1_000, seat);
        return new Promise(() => {});
      },
    });
  };
  for (let innocent = 0; innocent < 9; innocent += 1) await enqueue('innocent', 10);
  await enqueue('poison', 10);
  seat();
  await clock.advance(900_000);
  assert.deepEqual(
    ends().toSorted((one, other) => one.localeCompare(other)),
    ['dead, attempt 3, 3 crashes', ...Array.from({ length: 9 }, () => 'done, attempt 2, 1 crashes')],
  );
});

test('T23: a process that was blocked for longer than the lease drops the job first, and another one does it once', async () => {
  const { clock, start, enqueue, ends, events } = world();
  const seen: string[] = [];
  await enqueue('x');
  const { process } = start({
    async handle(_job, { signal }) {
      await new Promise<void>((resolve) => process.clock.after(20_000, resolve));
      seen.push(`aborted: ${signal.aborted}`);
      return ack();
    },
  });
  await clock.advance(5_000);
  process.pause(60_000);
  await clock.advance(1_000);
  start({
    async handle() {
      seen.push('again');
      return ack();
    },
  });
  await clock.advance(120_000);
  assert.deepEqual([seen, ends()], [['again', 'aborted: true'], ['done, attempt 2, 1 crashes']]);
  assert.ok(events.includes('job_lease_lost') && events.includes('event_loop_blocked'), events.join(' '));
});
