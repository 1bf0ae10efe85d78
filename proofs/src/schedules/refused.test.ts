import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deadLettering } from '../../../shared/src/dead-letter/dead-lettering.ts';
import { PermanentError } from '../../../shared/src/errors.ts';
import { compose, type Context } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import { memoryPayloads } from '../../../shared/src/payload/memory.ts';
import type { PayloadRef, PayloadStore } from '../../../shared/src/payload/payload-store.ts';
import { memoryPublisher } from '../../../shared/src/testing/memory-publisher.ts';
import { virtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import { play, reasonOf, SOURCE, START } from './play.ts';

/** The stage as a function has it, before a queue that takes no task until `repaired()`. */
function refusing(onDone: (payload: PayloadRef) => void = () => {}) {
  let way: 'refuses' | 'takes' | 'loses' = 'refuses';
  const ended: string[] = [];
  const store = memoryPayloads({ clock: virtualClock(START) });
  const payloads: PayloadStore = {
    ...store,
    async done(payload) {
      onDone(payload);
      ended.push(payload.id);
      return store.done(payload);
    },
  };
  const stage = play({
    payloads,
    wrapQueue: (tasks) => ({
      ...tasks,
      async create(task) {
        if (way === 'takes') return tasks.create(task);
        if (way === 'loses') return 'created';
        throw new PermanentError('TASK_REFUSED', 'does not take this task');
      },
    }),
  });
  const dead = memoryPublisher();
  const handler = compose((message) => stage.handle(message), [deadLettering(dead, 'dead-letters')]);
  const context = { consumer: 'delay', source: SOURCE, log: silent } as unknown as Context;
  const deliver = (message: ReturnType<typeof stage.message>) => handler(message, context);
  const set = (next: typeof way) => (): void => void (way = next);
  return {
    ...stage,
    dead,
    deliver,
    ended,
    repaired: set('takes'),
    refuse: set('refuses'),
    lose: set('loses'),
  };
}

test('a message that no queue takes, and whose dead letter is not published, is not lost: it comes again, and is dead-lettered then', async () => {
  const { dead, deliver, message, entry } = refusing();
  const refused = message({ scheduleKey: 'k', delay: '60' });
  dead.failOn(1, 'refused');
  assert.match(reasonOf(await deliver(refused)), /^retry /);
  assert.equal(entry('k')?.state, 'refused');
  assert.match(reasonOf(await deliver(refused)), /^deadLetter /);
  assert.equal(dead.published.length, 1);
});

test('a message that no queue took is scheduled when it comes again to one that does', async () => {
  const { clock, dead, deliver, message, repaired, published } = refusing();
  const refused = message({ scheduleKey: 'k', delay: '60' });
  dead.failOn(1, 'refused');
  await deliver(refused);
  repaired();
  assert.equal(reasonOf(await deliver(refused)), 'scheduled');
  await clock.advance(60_000);
  assert.deepEqual([published(), dead.published], [['hello'], []]);
});

test('a newer schedule takes precedence over a message that no queue took', async () => {
  const { clock, deliver, message, repaired, published, entry } = refusing();
  const refused = message({ scheduleKey: 'k', delay: '60' });
  await deliver(refused);
  await clock.advance(1_000);
  repaired();
  const cancel = message({ scheduleKey: 'k', cancel: 'true' });
  assert.equal(reasonOf(await deliver(cancel)), 'cancelled');
  assert.equal(reasonOf(await deliver(refused)), 'stale');
  await clock.advance(120_000);
  assert.deepEqual([published(), entry('k')?.state], [[], 'cancelled']);
});

test('the payload of a message that no queue took is marked as done: nothing will read it', async () => {
  const ended: string[] = [];
  const { deliver, message } = refusing(({ id }) => ended.push(id));
  await deliver(message({ scheduleKey: 'k', delay: '60' }, 'x'.repeat(200_000)));
  assert.equal(ended.length, 1);
});

/** A program's schedule before a queue that refuses every task until `repaired()`, and what the sweep says of it. */
function program() {
  const stage = refusing();
  const lines: (readonly [string, unknown])[] = [];
  const log = {
    ...silent,
    warn: (_: string, fields?: object) => void lines.push(['warn', fields]),
    error: (_: string, fields?: object) => void lines.push(['error', (fields as { event?: string }).event]),
  };
  const put = (data = 'hello') =>
    stage.memory.transact((tx) => stage.schedules.put(tx, 'k', { data, delay: '1h' }));
  return { ...stage, put, lines, sweepLogging: () => stage.sweep({ log }) };
}

test('a program’s schedule that the queue refuses is marked, logged as an error, listed, and swept no more', async () => {
  const { clock, put, lines, sweepLogging, schedules } = program();
  await put();
  await clock.advance(60_000);
  assert.deepEqual(await sweepLogging(), { due: 1, done: 0, refused: 1, failed: 0, isWhole: true });
  assert.deepEqual(lines, [['error', 'schedule_refused']]);
  const { schedules: listed } = await schedules.list();
  assert.deepEqual(
    listed.map(({ key, state, isPending }) => [key, state, isPending]),
    [['k', 'refused', false]],
  );
  await clock.advance(86_400_000);
  assert.deepEqual(await sweepLogging(), { due: 0, done: 0, refused: 0, failed: 0, isWhole: true });
  assert.equal(lines.length, 1);
});

test('afterCommit says at once that the queue refuses, and leaves nothing for the sweep', async () => {
  const { clock, put, sweepLogging, schedules } = program();
  const change = await put();
  await assert.rejects(change.afterCommit(), { code: 'TASK_REFUSED' });
  assert.equal((await schedules.get('k'))?.state, 'refused');
  await clock.advance(3_600_000);
  assert.equal((await sweepLogging()).due, 0);
});

test('what was refused keeps its message, and is delivered once it is reopened after the queue is repaired', async () => {
  for (const data of ['hello', 'x'.repeat(200_000)]) {
    const { clock, put, sweepLogging, schedules, repaired, published } = program();
    await put(data);
    await clock.advance(60_000);
    await sweepLogging();
    await assert.rejects(schedules.reopen('k'), { code: 'TASK_REFUSED' });
    assert.equal((await schedules.get('k'))?.state, 'refused');
    repaired();
    assert.equal(await schedules.reopen('k'), true);
    assert.equal(await schedules.reopen('k'), false, 'it has a task');
    await clock.advance(3_600_000);
    assert.deepEqual(published(), [data]);
    assert.equal(await schedules.reopen('k'), false, 'it is delivered');
  }
});

test('a refused schedule yields to a later schedule and to a cancel, and its payload is marked as done', async () => {
  for (const way of ['replace', 'cancel'] as const) {
    const { clock, put, sweepLogging, schedules, memory, repaired, published, ended } = program();
    await put('x'.repeat(200_000));
    await clock.advance(60_000);
    await sweepLogging();
    assert.equal(ended.length, 0);
    repaired();
    const change = await (way === 'replace'
      ? put('new')
      : memory.transact((tx) => schedules.cancel(tx, 'k')));
    await change.afterCommit();
    assert.equal(ended.length, 1);
    await clock.advance(7_200_000);
    assert.deepEqual(published(), way === 'replace' ? ['new'] : []);
  }
});

test('a lost task that the queue refuses when it is put back keeps its message too', async () => {
  const { clock, deliver, message, repaired, refuse, lose, ...rest } = program();
  const { sweepLogging, schedules, entry, published } = rest;
  lose();
  await deliver(message({ scheduleKey: 'k', delay: '60' }));
  refuse();
  await clock.advance(3_600_000);
  assert.equal((await sweepLogging()).refused, 1);
  assert.deepEqual([entry('k')?.state, published()], ['refused', []]);
  repaired();
  assert.equal(await schedules.reopen('k'), true);
  await clock.advance(1_000);
  assert.deepEqual(published(), ['hello']);
});
