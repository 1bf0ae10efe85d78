import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { PermanentError } from '../../../shared/src/errors.ts';
import { play, type PlayOptions, reasonOf } from '../schedules/play.ts';
import { registerSdk } from './sdk.ts';

/** All parts around one ledger, and how often each answer was counted, by its consumer. */
function setUp(t: TestContext, options: PlayOptions = {}) {
  const sdk = registerSdk();
  t.after(() => sdk.close());
  const stage = play(options);
  const counted = async (): Promise<Record<string, unknown>> => {
    const points = await sdk.points('pubsub_guarantees.schedules');
    return Object.fromEntries(
      points.map(({ attributes, value }) => {
        const {
          'pubsub_guarantees.consumer': consumer,
          'pubsub_guarantees.answer': answer,
          ...more
        } = attributes;
        assert.deepEqual(more, {});
        return [`${String(consumer)} ${String(answer)}`, value];
      }),
    );
  };
  const program = async (work: 'put' | 'cancel', key: string): Promise<string> => {
    const { answer, afterCommit } =
      work === 'put'
        ? await stage.memory.transact((tx) => stage.schedules.put(tx, key, { data: 'hello', delay: '1m' }))
        : await stage.memory.transact((tx) => stage.schedules.cancel(tx, key));
    await afterCommit();
    return answer;
  };
  return { ...stage, program, counted };
}

test('what becomes of schedules that messages ask for is counted, and what the republisher makes of their tasks', async (t) => {
  const { clock, deliver, message, counted } = setUp(t);
  const older = message({ scheduleKey: 'k', delay: '60' });
  await clock.advance(1_000);
  const newer = message({ scheduleKey: 'k', delay: '60' });
  await deliver(older);
  await deliver(newer);
  assert.equal(reasonOf(await deliver(older)), 'stale');
  await clock.advance(1_000);
  await deliver(message({ scheduleKey: 'cancelled', delay: '60' }));
  await clock.advance(1_000);
  await deliver(message({ scheduleKey: 'cancelled', cancel: 'true' }));
  await clock.advance(120_000);
  assert.deepEqual(await counted(), {
    'delay scheduled': 3,
    'delay replaced': 1,
    'delay stale': 1,
    'delay cancelled': 1,
    'republisher dropped': 2,
    'republisher delivered': 1,
  });
});

test('what becomes of schedules that programs ask for is counted', async (t) => {
  const { clock, program, counted } = setUp(t);
  const answers = [await program('put', 'withdrawn'), await program('cancel', 'withdrawn')];
  answers.push(await program('put', 'late'));
  await clock.advance(120_000);
  answers.push(await program('cancel', 'late'));
  assert.deepEqual(answers, ['scheduled', 'cancelled', 'scheduled', 'tooLate']);
  assert.deepEqual(await counted(), {
    'delay scheduled': 2,
    'delay cancelled': 1,
    'delay tooLate': 1,
    'republisher dropped': 1,
    'republisher delivered': 1,
  });
});

test('schedules that the queue refuses are counted once each, in a delivery, after a commit and in a sweep', async (t) => {
  const { clock, deliver, memory, message, program, schedules, sweep, counted } = setUp(t, {
    wrapQueue: (tasks) => ({
      ...tasks,
      create: () => Promise.reject(new PermanentError('TASK_REFUSED', 'does not take this task')),
    }),
  });
  assert.equal((await deliver(message({ scheduleKey: 'a', delay: '60' }))).kind, 'deadLetter');
  assert.deepEqual(await counted(), { 'delay refused': 1 });
  await assert.rejects(program('put', 'b'), { code: 'TASK_REFUSED' });
  assert.deepEqual(await counted(), { 'delay refused': 2, 'delay scheduled': 1 });
  await memory.transact((tx) => schedules.put(tx, 'c', { data: 'hello', delay: '1h' }));
  await clock.advance(60_000);
  assert.equal((await sweep()).refused, 1);
  assert.equal((await sweep()).refused, 0);
  assert.deepEqual(await counted(), { 'delay refused': 3, 'delay scheduled': 1 });
});

test('tasks that the sweep puts back are counted', async (t) => {
  let isLosing = true;
  const { clock, deliver, message, sweep, counted } = setUp(t, {
    wrapQueue: (tasks) => ({
      ...tasks,
      create: (task) => (isLosing ? Promise.resolve('created') : tasks.create(task)),
    }),
  });
  await deliver(message({ scheduleKey: 'k', delay: '60' }));
  isLosing = false;
  await clock.advance(3_600_000);
  assert.equal((await sweep()).done, 1);
  await clock.advance(1_000);
  assert.deepEqual(await counted(), {
    'delay scheduled': 1,
    'delay recovered': 1,
    'republisher delivered': 1,
  });
});

test('an entry whose message the republisher makes a dead letter is counted', async (t) => {
  const { clock, deliver, message, target, dead, counted } = setUp(t);
  Object.assign(target, { publish: () => Promise.reject(new PermanentError('TOPIC_MISSING', 'gone')) });
  await deliver(message({ scheduleKey: 'k', delay: '60' }));
  await clock.advance(120_000);
  assert.equal(dead.published.length, 1);
  assert.deepEqual(await counted(), { 'delay scheduled': 1, 'republisher deadLettered': 1 });
});
