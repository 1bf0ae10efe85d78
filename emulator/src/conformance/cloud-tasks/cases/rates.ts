/** How many tasks a queue dispatches, and when. */
import assert from 'node:assert/strict';
import { createTask, later, openQueue, seconds, section, times, type TasksCase } from '../section.ts';
import { PITFALLS, RATE_LIMITS } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const of = section('Rate limits');
const HOUR_MS = 3_600_000;

async function create(world: TasksWorld, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await createTask(world);
}
const countAt = (at: readonly number[], milliseconds: number): number =>
  at.filter((ms) => ms <= milliseconds).length;

export const rateCases: readonly TasksCase[] = [
  of(
    'dispatches a burst, and then by the rate: 100 tasks at 1 per second in 90 seconds',
    RATE_LIMITS,
    async (world) => {
      const { rateLimits } = await openQueue(world, { rateLimits: { maxDispatchesPerSecond: 1 } });
      await create(world, 100);
      const from = world.now();
      await world.pass(HOUR_MS);
      const at = times(world, from);
      const burst = rateLimits['maxBurstSize'] ?? 0;
      assert.equal(countAt(at, 0), burst);
      assert.deepEqual(
        at.slice(burst),
        Array.from({ length: 100 - burst }, (_, n) => (n + 1) * 1_000),
      );
    },
  ),
  of('a rate below one per second', RATE_LIMITS, async (world) => {
    await openQueue(world, { rateLimits: { maxDispatchesPerSecond: 0.1 } });
    await create(world, 13);
    const from = world.now();
    await world.pass(HOUR_MS);
    assert.deepEqual(times(world, from).slice(-3), [10_000, 20_000, 30_000]);
  }),
  of('at the highest rate a burst goes out, and then one task every 2 ms', RATE_LIMITS, async (world) => {
    const { rateLimits } = await openQueue(world, { rateLimits: { maxDispatchesPerSecond: 500 } });
    await world.call('PauseQueue', { name: world.queue });
    await create(world, 120);
    await world.call('ResumeQueue', { name: world.queue });
    const from = world.now();
    await world.pass(1_000);
    const burst = rateLimits['maxBurstSize'] ?? 0;
    const rest = Array.from({ length: 120 - burst }, (_, n) => (n + 1) * 2);
    assert.deepEqual(times(world, from).slice(burst), rest);
  }),
  of('the bucket fills again while nothing is dispatched, up to the burst', RATE_LIMITS, async (world) => {
    const { rateLimits } = await openQueue(world, { rateLimits: { maxDispatchesPerSecond: 1 } });
    const burst = rateLimits['maxBurstSize'] ?? 0;
    await create(world, burst);
    await world.pass(HOUR_MS);
    await create(world, burst + 1);
    await world.pass(0);
    assert.equal(world.target.received.length, 2 * burst);
  }),
  of('retries count against the rate like first attempts', RATE_LIMITS, async (world) => {
    await openQueue(world, {
      rateLimits: { maxDispatchesPerSecond: 1 },
      retryConfig: { minBackoff: seconds(1), maxBackoff: seconds(1), maxAttempts: 2 },
    });
    world.target.answer.with = () => 500;
    await create(world, 10);
    const from = world.now();
    await world.pass(HOUR_MS);
    const at = times(world, from);
    assert.deepEqual([at.length, countAt(at, 5_000), countAt(at, 10_000)], [20, 15, 20]);
  }),
  of('never has more attempts in flight than are allowed at once', RATE_LIMITS, async (world) => {
    await openQueue(world, { rateLimits: { maxConcurrentDispatches: 3 } });
    world.target.answer.with = () => 'hang';
    await create(world, 5);
    await world.pass(1_000);
    assert.equal(world.target.received.length, 3);
  }),
  of('an attempt that ends makes room for the next', RATE_LIMITS, async (world) => {
    await openQueue(world, { rateLimits: { maxConcurrentDispatches: 1 } });
    await create(world, 5);
    await world.pass(0);
    assert.equal(world.target.received.length, 5);
  }),
  of('each queue has limits of its own', RATE_LIMITS, async (world) => {
    await openQueue(world, { rateLimits: { maxDispatchesPerSecond: 0.001 } });
    await openQueue(world, {}, 'fast');
    await create(world, 11);
    const parent = `${world.parent}/queues/fast`;
    for (let n = 0; n < 11; n += 1)
      await world.call('CreateTask', { parent, task: { httpRequest: { url: `${world.target.url}/fast` } } });
    await world.pass(0);
    const paths = world.target.received.map(({ url }) => url);
    assert.deepEqual(
      [paths.filter((path) => path === '/').length, paths.filter((path) => path === '/fast').length],
      [10, 11],
    );
  }),
  // The order is not promised. With one at a time and all of them due, the earlier schedule time goes first here.
  of('dispatches every task once, whatever the order', PITFALLS, async (world) => {
    await openQueue(world);
    for (const [id, milliseconds] of [
      ['late', 3_000],
      ['early', 1_000],
      ['middle', 2_000],
    ] as const) {
      await createTask(world, { scheduleTime: later(world, milliseconds) }, id);
    }
    await world.pass(10_000);
    const ids = world.target.received.map(({ headers }) => headers['x-cloudtasks-taskname']);
    assert.deepEqual(ids.map(String).toSorted(), ['early', 'late', 'middle']);
  }),
];
