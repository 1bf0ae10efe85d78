/** What is measured of jobs: what became of enqueues and runs, how long they waited, and both thresholds as gauges. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PermanentError } from '../../../shared/src/errors.ts';
import { silent } from '../../../shared/src/log.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { jobs } from '../../../shared/src/jobs/jobs.ts';
import { memoryJobs } from '../../../shared/src/jobs/memory.ts';
import { worker } from '../../../shared/src/jobs/worker.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import { registerSdk } from './sdk.ts';

const NAME = 'pubsub_guarantees.';

test('enqueues, runs and rescues of jobs are counted, and the gauges say what health judges by', async (t) => {
  const sdk = registerSdk();
  t.after(() => sdk.close());
  const clock = virtualClock();
  const store = memoryJobs({ clock });
  const queue = jobs(store, { clock });
  const base = { role: 'r', kind: 'k' } as const;
  await queue.submit([
    { ...base, payload: 'good', key: 'a' },
    { ...base, payload: 'good', key: 'a' },
    { ...base, payload: 'other', key: 'a' },
    { ...base, payload: 'bad' },
  ]);
  // A claim whose process dies.
  const claim = { roles: [{ role: 'r', leaseMs: 1_000 }], limit: 1, suspect: true, ageingMs: 60_000 };
  await store.exchange('dead', 1, { renew: [], settle: [], claim });
  await clock.advance(10_000);
  const handle = {
    async k(job: Readonly<{ payload: unknown }>) {
      await new Promise<void>((resolve) => clock.after(2_000, resolve));
      if (job.payload === 'bad') throw new PermanentError('NEVER', 'no');
      return ack();
    },
  };
  const options = { clock, log: silent, random: () => 0.5, drainOnSigterm: false };
  const running = worker(store, { r: { runTimeout: '1m', handle } }, options);
  await clock.advance(20_000);

  /** Each as its attributes and its value. */
  const points = async (name: string): Promise<Readonly<Record<string, number>>> => {
    const found = await sdk.points(`${NAME}${name}`);
    return Object.fromEntries(
      found.map(({ attributes, value }) => [
        Object.entries(attributes)
          .map(([key, one]) => `${key.replace(NAME, '')}=${String(one)}`)
          .join(' '),
        value,
      ]),
    );
  };
  assert.deepEqual(await points('jobs.enqueued'), {
    'role=r answer=enqueued': 2,
    'role=r answer=repeated': 1,
    'role=r answer=conflict': 1,
  });
  assert.deepEqual(await points('jobs.outcomes'), {
    'role=r outcome=dead reason=NEVER': 1,
    'role=r outcome=done': 1,
  });
  assert.deepEqual(await points('jobs.rescued'), { 'answer=ready': 1 });
  assert.deepEqual(await points('jobs.pick_up.duration'), { 'role=r': 2 });
  const [run] = await sdk.points(`${NAME}jobs.run.duration`);
  assert.deepEqual([run?.value, run?.sum], [2, 4]);

  await clock.advance(2_000_000);
  const { vitals } = await queue.health();
  assert.deepEqual(await points('jobs.backlog.mean'), { '': vitals.meanBacklog });
  assert.deepEqual(await points('jobs.pick_up.percentile'), { '': 12 });
  assert.equal(vitals.pickUpP95Ms, 12_000);
  assert.deepEqual([await points('jobs.backlog'), await points('jobs.dead')], [{ '': 0 }, { '': 1 }]);
  await clock.advance(3_700_000);
  assert.deepEqual(await points('jobs.pick_up.percentile'), { '': 0 });
  await running.stop();
});

test('a worker asks the store for the gauges only where an SDK measures', async () => {
  const clock = virtualClock();
  const asked: string[] = [];
  const store = memoryJobs({
    clock,
    network(request, send) {
      asked.push(request);
      return send();
    },
  });
  const options = { clock, log: silent, random: () => 0.5, drainOnSigterm: false };
  const running = worker(store, { r: { runTimeout: '1m', handle: {} } }, options);
  await clock.advance(180_000);
  assert.ok(asked.includes('tidy') && !asked.includes('vitals'), 'as without one');
  await running.stop();
});
