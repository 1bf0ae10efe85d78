import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, PermanentError } from '../../../shared/src/errors.ts';
import { decodeDelayed } from '../../../shared/src/tasks/task-body.ts';
import { silent } from '../../../shared/src/log.ts';
import { republish } from '../../../shared/src/delay/republish.ts';
import { deadLettering } from '../../../shared/src/dead-letter/dead-lettering.ts';
import { anEntry } from '../../../shared/src/schedules/contract.ts';
import { markDelivered } from '../../../shared/src/schedules/decide.ts';
import { play, reasonOf, SOURCE, START, TOPIC } from './play.ts';
import { refusal } from '../../../shared/src/testing/refusal.ts';

const KEY = 'order/1';

test('a scheduled message arrives once, at its due time, without its delivery options and with its identity', async () => {
  const { clock, deliver, message, target, publishedAt, entry } = play();
  const received = message({ scheduleKey: KEY, delay: '60', tenant: 'a' }, 'hello');
  assert.equal(reasonOf(await deliver(received)), 'scheduled');
  await clock.advance(3_600_000);
  assert.deepEqual(publishedAt, [START + 60_000]);
  assert.deepEqual(target.published[0]?.attributes, {
    tenant: 'a',
    dedupId: `${SOURCE}/${received.id}`,
    deliveredAfter: '2030-01-01T00:01:00.000Z',
    originPublishTime: '2030-01-01T00:00:00.000Z',
  });
  const { state, delayed } = entry(KEY)!;
  assert.deepEqual([state, delayed], ['delivered', undefined]);
});

test('a message with a key and without a delay comes at once, and redeliveries of it do not come again', async () => {
  const { clock, deliver, message, published, tasks } = play();
  const received = message({ scheduleKey: KEY });
  for (const reason of ['scheduled', 'scheduled']) assert.equal(reasonOf(await deliver(received)), reason);
  await clock.advance(1_000);
  assert.equal(reasonOf(await deliver(received)), 'duplicate');
  await clock.advance(60_000);
  assert.deepEqual([published(), tasks.created.length], [['hello'], 1]);
});

test('a redelivery before the due time finds the existing task, by the generation of the entry', async () => {
  const { deliver, message, tasks, entry } = play();
  tasks.failOn(1, 'reply lost');
  const received = message({ scheduleKey: KEY, delay: '60' });
  assert.equal((await deliver(received)).kind, 'retry');
  assert.equal(entry(KEY)?.state, 'scheduled');
  const { generation } = entry(KEY)!;
  assert.equal(reasonOf(await deliver(received)), 'scheduled');
  assert.deepEqual([tasks.calls(), tasks.created.length, entry(KEY)?.generation], [2, 1, generation]);
  assert.equal(decodeDelayed(tasks.created[0]!.body).entry?.generation, generation);
});

test('a task that no queue ever takes makes the message a dead letter, and leaves nothing for the sweep', async () => {
  const { clock, deliver, message, sweep, entry } = play({
    wrapQueue: (queue) => ({
      ...queue,
      create: () => Promise.reject(new PermanentError('TASK_REFUSED', 'no')),
    }),
  });
  const outcome = await deliver(message({ scheduleKey: KEY, delay: '60' }));
  assert.equal(outcome.kind, 'deadLetter');
  assert.equal(entry(KEY)?.state, 'refused');
  await clock.advance(3_600_000);
  assert.deepEqual(await sweep(), { due: 0, done: 0, refused: 0, failed: 0, isWhole: true });
});

test('a message that is too large is refused before anything is written to the ledger', async () => {
  const { deliver, message, entry } = play();
  const outcome = await deliver(message({ scheduleKey: KEY, delay: '60' }, 'x'.repeat(200_000)));
  assert.ok(outcome.kind === 'deadLetter' && codeOf(outcome.error) === 'TASK_TOO_LARGE');
  assert.equal(entry(KEY), undefined);
});

test('a store that is down is a retry, for a schedule and for a cancel', async () => {
  const { deliver, message, tasks } = play({
    wrapLedger: (ledger) => ({ ...ledger, change: () => Promise.reject(new Error('down')) }),
  });
  for (const added of [{ delay: '60' }, { cancel: 'true' }]) {
    assert.equal(
      (await deliver(message({ scheduleKey: KEY, ...added } as Record<string, string>))).kind,
      'retry',
    );
  }
  assert.equal(tasks.calls(), 0);
});

test('keys of two sources or consumers are two deliveries', async () => {
  const { clock, memory, tasks, schedules: own, published } = play();
  const { schedules } = await import('../../../shared/src/schedules/schedules.ts');
  const options = { clock, consumer: 'delay', topic: TOPIC };
  const other = schedules(memory, tasks, { ...options, source: 'projects/p/subscriptions/other' });
  for (const [api, data] of [[own, 'one'] as const, [other, 'two'] as const]) {
    const change = await memory.transact((tx) => api.put(tx, KEY, { data, delay: '1s' }));
    await change.afterCommit();
  }
  await clock.advance(10_000);
  assert.deepEqual(published().toSorted(), ['one', 'two']);
});

test('with an entry for every message, two messages of one dedupId are still two', async () => {
  const { clock, deliver, message, target } = play({ ledgerFor: 'all' });
  await deliver(message({ dedupId: 'same', delay: '10' }, 'A'));
  await deliver(message({ dedupId: 'same', delay: '20' }, 'B'));
  await clock.advance(60_000);
  assert.deepEqual(
    target.published.map(({ data }) => Buffer.from(data).toString()),
    ['A', 'B'],
  );
});

test('a second run of a task that is publishing is refused, and afterwards finds the message delivered', async () => {
  const { clock, deliver, message, tasks, dispatch, target, published } = play({ dispatches: false });
  await deliver(message({ scheduleKey: KEY, delay: '1' }));
  await clock.advance(1_000);
  const { publish } = target;
  let finish = (): void => {};
  const slow = new Promise<void>((resolve) => void (finish = resolve));
  Object.assign(target, {
    publish: (...args: Parameters<typeof publish>) => slow.then(() => publish(...args)),
  });
  const first = dispatch(tasks.created[0]!);
  assert.deepEqual(await clock.until(dispatch(tasks.created[0]!, 1)), { status: 503 });
  finish();
  assert.deepEqual(await clock.until(first), { status: 204 });
  assert.deepEqual(await clock.until(dispatch(tasks.created[0]!, 2)), { status: 204 });
  assert.deepEqual(published(), ['hello']);
});

test('a run whose lease ended before its publish began does not publish: another run may have', async () => {
  let isSlow = true;
  const { clock, deliver, message, tasks, dispatch, published } = play({
    dispatches: false,
    wrapFiring: (ledger) => ({
      ...ledger,
      change: async (id, rule) => {
        const decision = await ledger.change(id, rule);
        if (isSlow) await clock.advance(30_000);
        return decision;
      },
    }),
  });
  await deliver(message({ scheduleKey: KEY, delay: '1' }));
  await clock.advance(1_000);
  assert.deepEqual(await dispatch(tasks.created[0]!), { status: 503 });
  assert.deepEqual(published(), []);
  isSlow = false;
  assert.deepEqual(await clock.until(dispatch(tasks.created[0]!, 1)), { status: 204 });
  assert.deepEqual(published(), ['hello']);
});

test('a republisher that was suspended under its lease does not publish: another run may have', async () => {
  const world = play({
    dispatches: false,
    wrapFiring: (ledger) => ({
      ...ledger,
      change: async (id, rule) => {
        const decision = await ledger.change(id, rule);
        if (isAsleep) world.clock.suspend(30_000);
        return decision;
      },
    }),
  });
  let isAsleep = true;
  const { clock, deliver, message, tasks, dispatch, published } = world;
  await deliver(message({ scheduleKey: KEY, delay: '1' }));
  await clock.advance(1_000);
  assert.deepEqual(await dispatch(tasks.created[0]!), { status: 503 });
  assert.deepEqual(published(), []);
  isAsleep = false;
  assert.deepEqual(await clock.until(dispatch(tasks.created[0]!, 1)), { status: 204 });
  assert.deepEqual(published(), ['hello']);
});

test('with a ledger a publish may not take longer than a cancel assumes', () => {
  const republisher = { publishTimeout: '31s' } as const;
  assert.throws(() => play({ republisher }), refusal('publishTimeout'));
});

test('only the run that fired last marks the entry as delivered', () => {
  const firing = anEntry({ state: 'firing', firing: { token: 'second', untilMs: 1 } });
  const { generation } = firing;
  assert.equal(markDelivered({ generation, token: 'first' })(firing, 2).answer, 'movedOn');
  assert.equal(markDelivered({ generation: 'other', token: 'second' })(firing, 2).answer, 'movedOn');
  assert.equal(markDelivered({ generation, token: 'second' })(firing, 2).answer, 'delivered');
});

test('a publish of unknown outcome is repeated after the lease, under the same dedupId', async () => {
  const { clock, deliver, message, target, publishedAt, entry } = play();
  target.failOn(1, 'reply lost');
  await deliver(message({ scheduleKey: KEY, delay: '1' }));
  await clock.advance(120_000);
  assert.equal(new Set(target.published.map(({ attributes }) => attributes['dedupId'])).size, 1);
  assert.equal(target.published.length, 2);
  assert.ok(publishedAt[1]! >= publishedAt[0]! + 30_000);
  assert.equal(entry(KEY)?.state, 'delivered');
});

test('a message that can never be published goes to the dead letters, and its entry ends', async () => {
  const { clock, deliver, message, sweep, dead, entry, target } = play();
  const attributes = { scheduleKey: KEY, delay: '1' };
  Object.assign(target, { publish: () => Promise.reject(new PermanentError('TOPIC_MISSING', 'gone')) });
  await deliver(message(attributes));
  await clock.advance(60_000);
  assert.deepEqual([dead.published.length, entry(KEY)?.state], [1, 'deadLettered']);
  await clock.advance(3_600_000);
  assert.equal((await sweep()).due, 0);
});

test('the last attempt of a queue with a limit gives no scheduled message to the dead letters: the sweep has it', async () => {
  const { clock, deliver, message, tasks, dispatch, sweep, dead, target, published } = play({
    dispatches: false,
    republisher: { maxAttempts: 3 },
  });
  target.failOn(1, 'refused');
  await deliver(message({ scheduleKey: KEY, delay: '1' }));
  await clock.advance(1_000);
  assert.deepEqual(await clock.until(dispatch(tasks.created[0]!, 2)), { status: 503 });
  assert.equal(dead.published.length, 0);
  await clock.advance(700_000);
  assert.equal((await sweep()).done, 1);
  assert.deepEqual(await clock.until(dispatch(tasks.created[1]!)), { status: 204 });
  assert.deepEqual(published(), ['hello']);
});

test('a hop whose schedule was cancelled makes no next one', async () => {
  const { clock, deliver, message, tasks } = play();
  await deliver(message({ scheduleKey: KEY, delay: String(90 * 86_400) }));
  await clock.advance(86_400_000);
  await deliver(message({ scheduleKey: KEY, cancel: 'true' }));
  await clock.advance(90 * 86_400_000);
  assert.deepEqual([tasks.created.length, tasks.pending()], [1, 0]);
});

test('a republisher without a ledger neither publishes nor dead-letters a message that belongs to one', async () => {
  const { clock, deliver, message, tasks, target } = play({ dispatches: false });
  await deliver(message({ scheduleKey: KEY, delay: '1' }));
  await clock.advance(1_000);
  const ports = {
    publisher: target,
    queue: tasks,
    deadLetters: deadLettering(target, 'dead'),
  };
  const run = republish(ports, { allowedTopics: [TOPIC], clock, log: silent });
  assert.deepEqual(await clock.until(run({ body: tasks.created[0]!.body })), { status: 503 });
  assert.equal(target.published.length, 0);
});

test('a schedule far ahead is not refused because the clock of stage, sweep and republisher is days ahead', async () => {
  const { clock, deliver, message, memory, schedules, sweep, published } = play({ skewMs: 5 * 86_400_000 });
  await deliver(message({ scheduleKey: KEY, delay: String(90 * 86_400) }));
  await memory.transact((tx) => schedules.put(tx, 'program', { data: 'P', delay: '90d' }));
  await clock.advance(60_000);
  const { done: recovered, refused } = await sweep();
  assert.deepEqual([recovered, refused], [1, 0]);
  await clock.advance(91 * 86_400_000);
  assert.deepEqual(published().toSorted(), ['P', 'hello']);
});

test('a program that commits and dies leaves an entry that the sweep gives a task', async () => {
  const { clock, memory, schedules, sweep, published } = play();
  await memory.transact((tx) => schedules.put(tx, KEY, { data: 'P', delay: '5m' }));
  assert.equal((await sweep()).due, 0);
  await clock.advance(60_000);
  assert.deepEqual(await sweep(), { due: 1, done: 1, refused: 0, failed: 0, isWhole: true });
  assert.equal((await schedules.get(KEY))?.state, 'scheduled');
  await clock.advance(600_000);
  assert.deepEqual(published(), ['P']);
});

test('a program lists what is pending, page by page, and gets one by its key', async () => {
  const { memory, schedules, clock } = play();
  for (const [key, delay] of [
    ['a/1', '3m'],
    ['a/2', '1m'],
    ['b/1', '2m'],
  ] as const) {
    await memory.transact((tx) => schedules.put(tx, key, { data: key, delay }));
  }
  const keys = ({ schedules: found }: { schedules: readonly { key: string }[] }) =>
    found.map(({ key }) => key);
  assert.deepEqual(keys(await schedules.list({ prefix: 'a/' })), ['a/1', 'a/2']);
  const before = new Date(clock.now() + 180_000);
  const first = await schedules.list({ before, pageSize: 1 });
  const second = await schedules.list({ before, pageSize: 1, pageToken: first.nextPageToken! });
  assert.deepEqual([keys(first), keys(second), second.nextPageToken], [['a/2'], ['b/1'], undefined]);
  assert.deepEqual(await schedules.get('a/2'), {
    key: 'a/2',
    state: 'unscheduled',
    isPending: true,
    deliverAt: new Date(START + 60_000),
  });
  assert.equal(await schedules.get('none'), undefined);
  await assert.rejects(schedules.list({ pageSize: 0 }), refusal('pageSize'));
  await assert.rejects(schedules.list({ before: new Date(NaN) }), refusal('before'));
});

test('a slot is used once, a key has at most the length of the wire contract, and a message carries no other schedule', async () => {
  const { memory, schedules, tasks } = play();
  const within = <T>(work: Parameters<typeof memory.transact<T>>[0]) => memory.transact(work);
  await within(async (tx) => {
    const slot = await schedules.reserve(tx, KEY);
    assert.equal(slot.found, undefined);
    slot.cancel();
    assert.throws(() => slot.cancel(), { name: 'ConfigError', code: 'SLOT_USED' });
  });
  for (const key of ['', 'x'.repeat(1_025), '\ud800']) {
    await assert.rejects(
      within((tx) => schedules.cancel(tx, key)),
      { name: 'PermanentError', code: 'INVALID_MESSAGE', message: /^the key is / },
    );
  }
  const bad = { data: 'x', attributes: { scheduleKey: 'other' } };
  await assert.rejects(
    within((tx) => schedules.put(tx, 'x', bad)),
    PermanentError,
  );
  const ancient = { data: 'x', deliverAt: new Date(START + 11 * 365 * 86_400_000) };
  await assert.rejects(
    within((tx) => schedules.put(tx, 'x', ancient)),
    PermanentError,
  );
  assert.equal(tasks.calls(), 0);
});
