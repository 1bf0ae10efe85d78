/** CreateTask: schedule times, and that they are kept. */
import assert from 'node:assert/strict';
import { createTask, later, openQueue, refused, seconds, section, type TasksCase } from '../section.ts';
import { METHODS, QUOTAS, TASK } from '../sources.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const of = section('Creating tasks: schedule times');
const FAR = /Schedule time must be no more than 720h in the future\./;

export const scheduleCases: readonly TasksCase[] = [
  of('sets the schedule time to now where it is absent', METHODS, async (world) => {
    await openQueue(world);
    assert.equal(Number((await createTask(world)).scheduleTime.seconds) * 1_000, world.now());
  }),
  of('sets the schedule time to now where it is in the past', METHODS, async (world) => {
    await openQueue(world);
    const { scheduleTime } = await createTask(world, { scheduleTime: seconds(1_000) });
    assert.equal(Number(scheduleTime.seconds) * 1_000, world.now());
  }),
  of('accepts a schedule time 720 hours ahead', QUOTAS, async (world) => {
    await openQueue(world);
    await createTask(world, { scheduleTime: later(world, 720 * HOUR_MS) });
  }),
  of('refuses a schedule time more than 720 hours ahead', QUOTAS, async (world) => {
    await openQueue(world);
    await refused(
      createTask(world, { scheduleTime: later(world, 720 * HOUR_MS + 1_000) }),
      'INVALID_ARGUMENT',
      FAR,
    );
  }),
  of('refuses a schedule time ten years ahead instead of clamping it', QUOTAS, async (world) => {
    await openQueue(world);
    await refused(createTask(world, { scheduleTime: later(world, 3_650 * DAY_MS) }), 'INVALID_ARGUMENT', FAR);
  }),
  of('dispatches at the schedule time, and not before', METHODS, async (world) => {
    await openQueue(world);
    await createTask(world, { scheduleTime: later(world, 60_000) });
    await world.pass(59_999);
    assert.equal(world.target.received.length, 0, 'dispatched before the schedule time');
    await world.pass(1);
    assert.equal(world.target.received.length, 1, 'not dispatched at the schedule time');
  }),
  of('keeps a schedule time beyond 24.8 days, the longest timer of many runtimes', QUOTAS, async (world) => {
    await openQueue(world);
    await createTask(world, { scheduleTime: later(world, 30 * DAY_MS) });
    await world.pass(30 * DAY_MS - 1);
    assert.equal(world.target.received.length, 0, 'dispatched before the schedule time');
    await world.pass(1);
    assert.equal(world.target.received.length, 1, 'not dispatched at the schedule time');
  }),
  of('cuts the schedule time to microseconds', TASK, async (world) => {
    await openQueue(world);
    const { seconds: whole = '' } = later(world, 5_000) as { seconds?: string };
    const { scheduleTime } = await createTask(world, { scheduleTime: { seconds: whole, nanos: 1_999 } });
    assert.equal(scheduleTime.nanos, 1_000);
  }),
  of('cuts the creation time to seconds', TASK, async (world) => {
    await openQueue(world);
    await world.pass(900);
    const { createTime } = await createTask(world, { scheduleTime: later(world, 5_000) });
    assert.deepEqual(createTime, { seconds: String(Math.floor(world.now() / 1_000)), nanos: 0 });
  }),
  of('refuses a time that is no valid timestamp', TASK, async (world) => {
    await openQueue(world);
    await refused(createTask(world, { scheduleTime: { seconds: '253402300800' } }), 'INVALID_ARGUMENT');
    await refused(createTask(world, { scheduleTime: { seconds: '1', nanos: -1 } }), 'INVALID_ARGUMENT');
  }),
];
