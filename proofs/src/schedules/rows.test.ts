import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TransientError } from '../../../shared/src/errors.ts';
import { fire, markDelivered } from '../../../shared/src/schedules/decide.ts';
import { entryId } from '../../../shared/src/schedules/entry.ts';
import { CONSUMER, play, reasonOf, SOURCE, START } from './play.ts';

const KEY = 'invoice/17';
const at = (seconds: number) => new Date(START + seconds * 1_000).toISOString();
const lost = (): TransientError => new TransientError('LOST', 'reply lost');

test('L1: a message with a scheduleKey never goes on directly, and the schedule that it replaces does not fire', async () => {
  const { clock, deliver, message, passed, published } = play();
  await deliver(message({ scheduleKey: KEY, delay: '10' }, 'M0'));
  await clock.advance(1_000);
  assert.equal(reasonOf(await deliver(message({ scheduleKey: KEY }, 'M1'))), 'scheduled');
  await clock.advance(60_000);
  assert.deepEqual(published(), ['M1']);
  assert.equal(passed.length, 0);
});

test('L1: a message that was cancelled is not delivered by a redelivery after its due time', async () => {
  const { clock, deliver, message, passed, published, entry } = play();
  const m0 = message({ scheduleKey: KEY, delay: '10' }, 'M0');
  await deliver(m0);
  await clock.advance(1_000);
  assert.equal(reasonOf(await deliver(message({ scheduleKey: KEY, cancel: 'true' }))), 'cancelled');
  await clock.advance(120_000);
  assert.equal(reasonOf(await deliver(m0)), 'stale');
  await clock.advance(120_000);
  assert.deepEqual([published(), passed.length, entry(KEY)?.state], [[], 0, 'cancelled']);
});

test('L2: both ways write the same identity, and with an entry there is only one way', async () => {
  for (const ledgerFor of ['keys', 'all'] as const) {
    const { clock, deliver, message, passed, target } = play({ ledgerFor });
    const received = message({ delay: '10' }, 'M0');
    await deliver(received);
    await clock.advance(120_000);
    // Pub/Sub's clock has come as far.
    await deliver(message({}, 'another'));
    await deliver(received);
    await clock.advance(120_000);
    const once = `${SOURCE}/${received.id}`;
    const all = [...target.published, ...passed].map(({ attributes }) => attributes['dedupId']);
    assert.deepEqual(
      all.filter((dedupId) => dedupId === once),
      ledgerFor === 'all' ? [once] : [once, once],
    );
    assert.equal(all.length, ledgerFor === 'all' ? 2 : 3);
  }
});

test('L3: a message that comes while the former is firing, or after it, is a delivery of its own', async () => {
  for (const when of ['firing', 'delivered'] as const) {
    const { clock, deliver, message, memory, tasks, published, entry } = play({
      dispatches: when === 'delivered',
    });
    await deliver(message({ scheduleKey: KEY, delay: '10' }, 'M0'));
    await clock.advance(10_000);
    const id = entryId({ consumer: CONSUMER, source: SOURCE, key: KEY });
    const generation = entry(KEY)!.generation;
    if (when === 'firing') await memory.change(id, fire({ generation, token: 't', leaseMs: 30_000 }));
    assert.equal(entry(KEY)?.state, when);
    assert.equal(reasonOf(await deliver(message({ scheduleKey: KEY, delay: '5' }, 'M1'))), 'scheduled');
    // The old one's last step finds another generation, and is without effect.
    const late = await memory.change(id, markDelivered({ generation, token: 't' }));
    assert.equal(late.answer, 'movedOn');
    assert.equal(entry(KEY)?.state, 'scheduled');
    if (when === 'delivered') {
      await clock.advance(10_000);
      assert.deepEqual(published(), ['M0', 'M1']);
    }
    assert.equal(tasks.created.length, 2);
  }
});

test('L3: what was firing when it was replaced may still be published: a caller that cancels then is told', async () => {
  const { clock, deliver, message, memory, schedules, entry } = play({ dispatches: false });
  const id = entryId({ consumer: CONSUMER, source: SOURCE, key: KEY });
  await deliver(message({ scheduleKey: KEY, delay: '10' }, 'M0'));
  await clock.advance(10_000);
  const { generation } = entry(KEY)!;
  await memory.change(id, fire({ generation, token: 't', leaseMs: 30_000 }));
  await deliver(message({ scheduleKey: KEY, delay: '50' }, 'M1'));
  const put = () => memory.transact((tx) => schedules.put(tx, KEY, { data: 'P' }));
  const cancel = () => memory.transact((tx) => schedules.cancel(tx, KEY));
  assert.deepEqual([(await put()).answer, entry(KEY)?.state], ['tooLate', 'scheduled']);
  assert.deepEqual([(await cancel()).answer, entry(KEY)?.state], ['tooLate', 'cancelled']);
  // Its last step says that nothing is in flight any more; a run that died is forgotten a minute after it began.
  await memory.change(id, markDelivered({ generation, token: 't' }));
  assert.equal((await cancel()).answer, 'cancelled');
  assert.equal(entry(KEY)?.state, 'cancelled');
});

test('L4: a cancel that came too late still stops messages older than itself', async () => {
  const { clock, deliver, message, published, entry } = play();
  await deliver(message({ scheduleKey: KEY, delay: '10' }, 'M0'));
  const m1 = message({ scheduleKey: KEY, delay: '30' }, 'M1');
  await clock.advance(15_000);
  const cancel = message({ scheduleKey: KEY, cancel: 'true' });
  assert.equal(reasonOf(await deliver(cancel)), 'stale');
  assert.equal(entry(KEY)?.state, 'delivered');
  assert.equal(reasonOf(await deliver(m1)), 'stale');
  await clock.advance(120_000);
  assert.deepEqual(published(), ['M0']);
});

test('L5: a program whose clock is two minutes off neither blocks later messages nor is blocked by earlier', async () => {
  for (const skewMs of [120_000, -120_000]) {
    const { clock, deliver, message, memory, schedules, published } = play({ skewMs });
    await deliver(message({ scheduleKey: KEY, delay: '600' }, 'before'));
    const change = await memory.transact((tx) => schedules.put(tx, KEY, { data: 'program', delay: '10m' }));
    assert.equal(change.answer, 'scheduled');
    await change.afterCommit();
    await clock.advance(1_000);
    const later = await deliver(message({ scheduleKey: KEY, deliverAt: at(300) }, 'after'));
    assert.equal(reasonOf(later), 'scheduled');
    await clock.advance(3_600_000);
    assert.deepEqual(published(), ['after']);
  }
});

test('L6: a transaction function that is run again after it was replaced writes nothing, and says so', async () => {
  const { clock, memory, schedules, published } = play();
  const tx = { reads: new Map(), writes: new Map() };
  const commit = () => {
    for (const [id, entry] of tx.writes)
      memory.change(id, () => ({ answer: undefined, entry })).catch(assert.fail);
    tx.writes.clear();
  };
  const first = await schedules.put(tx, KEY, { data: 'P1', delay: '60s' });
  commit();
  const again = await schedules.put(tx, KEY, { data: 'P1', delay: '60s' });
  assert.deepEqual([first.answer, again.answer, tx.writes.size], ['scheduled', 'scheduled', 0]);
  const second = await memory.transact((other) => schedules.put(other, KEY, { data: 'P2', delay: '60s' }));
  assert.equal(second.answer, 'scheduled');
  const late = await schedules.put(tx, KEY, { data: 'P1', delay: '60s' });
  assert.deepEqual([late.answer, tx.writes.size], ['superseded', 0]);
  await Promise.all([first, again, second, late].map((change) => change.afterCommit()));
  await clock.advance(120_000);
  assert.deepEqual(published(), ['P2']);
});

test('L7: the mark of a task that has fired, or was cancelled meanwhile, changes nothing', async () => {
  for (const meanwhile of ['fired', 'cancelled'] as const) {
    const { clock, memory, schedules, tasks, entry, published } = play();
    const change = await memory.transact((tx) => schedules.put(tx, KEY, { data: 'P', delay: '1s' }));
    const create = tasks.create;
    // The reply to createTask takes two seconds.
    Object.assign(tasks, {
      create: async (...task: Parameters<typeof create>) => {
        const answer = await create(...task);
        if (meanwhile === 'cancelled') await memory.transact((tx) => schedules.cancel(tx, KEY));
        await clock.advance(2_000);
        return answer;
      },
    });
    await change.afterCommit();
    assert.equal(entry(KEY)?.state, meanwhile === 'fired' ? 'delivered' : 'cancelled');
    await clock.advance(3_600_000);
    assert.deepEqual(published(), meanwhile === 'fired' ? ['P'] : []);
  }
});

test('L8: a task that is lost while its entry is firing is put back after lease and grace', async () => {
  const { clock, deliver, dispatch, message, memory, sweep, tasks, entry, published } = play({
    dispatches: false,
  });
  await deliver(message({ scheduleKey: KEY, delay: '10' }, 'M0'));
  await clock.advance(10_000);
  const id = entryId({ consumer: CONSUMER, source: SOURCE, key: KEY });
  const { generation } = entry(KEY)!;
  await memory.change(id, fire({ generation, token: 'dead', leaseMs: 30_000 }));
  await clock.advance(30_000 + 600_000 - 1);
  assert.deepEqual(await sweep(), { due: 0, done: 0, refused: 0, failed: 0, isWhole: true });
  await clock.advance(1);
  assert.deepEqual(await sweep(), { due: 1, done: 1, refused: 0, failed: 0, isWhole: true });
  assert.deepEqual([entry(KEY)?.attempt, entry(KEY)?.state, tasks.created.length], [1, 'firing', 2]);
  assert.notEqual(tasks.created[0]?.name, tasks.created[1]?.name);
  assert.equal((await sweep()).due, 0);
  assert.deepEqual(await clock.until(dispatch(tasks.created[1]!)), { status: 204 });
  assert.deepEqual([published(), entry(KEY)?.state], [['M0'], 'delivered']);
});

test('L8: while no queue runs tasks for a day, an entry is put back a few times and not every ten minutes', async () => {
  const { clock, deliver, message, sweep, tasks, published, dispatch } = play({ dispatches: false });
  await deliver(message({ scheduleKey: KEY, delay: '60' }, 'M0'));
  for (let sweeps = 0; sweeps < 288; sweeps += 1) {
    await clock.advance(300_000);
    await sweep();
  }
  assert.equal(tasks.created.length, 8);
  for (const task of tasks.created) await clock.until(dispatch(task));
  assert.deepEqual(published(), ['M0']);
});

test('L9: a fast clock delivers nothing early, a slow one makes no loop', async () => {
  // With the longest hop of 29.5 days the third one's first task wakes seconds before the due time.
  const delays = { soon: 10, plain: 15, hop: 29.5 * 86_400 + 30, far: 40 * 86_400 };
  for (const skewMs of [20_000, -20_000]) {
    const { clock, deliver, message, publishedAt, published, tasks, passed } = play({ skewMs });
    for (const [name, seconds] of Object.entries(delays)) {
      const key: Record<string, string> = name === 'plain' ? {} : { scheduleKey: name };
      await deliver(message({ ...key, delay: String(seconds) }, name));
    }
    await clock.advance(41 * 86_400_000);
    assert.deepEqual(published(), Object.keys(delays));
    for (const [index, seconds] of Object.values(delays).entries()) {
      const lateMs = publishedAt[index]! - START - seconds * 1_000;
      assert.ok(lateMs >= 0 && lateMs <= 60_000, `${skewMs}: ${lateMs} ms`);
    }
    assert.ok(tasks.created.length < 40 && passed.length === 0);
  }
});

test('L10: the record of an ended schedule outlives every redelivery of the source', async () => {
  const { clock, deliver, message, published } = play();
  const m0 = message({ scheduleKey: KEY, delay: '10' }, 'M0');
  const cancelled = message({ scheduleKey: 'other', delay: '10' }, 'M1');
  await deliver(m0);
  await deliver(cancelled);
  await deliver(message({ scheduleKey: 'other', cancel: 'true' }));
  await clock.advance(31 * 86_400_000);
  assert.equal(reasonOf(await deliver(m0)), 'duplicate');
  assert.equal(reasonOf(await deliver(cancelled)), 'stale');
  await clock.advance(86_400_000);
  assert.deepEqual(published(), ['M0']);
});

test('L11: a task fires while its entry still says unscheduled', async () => {
  const { clock, memory, schedules, tasks, entry, published } = play();
  const change = await memory.transact((tx) => schedules.put(tx, KEY, { data: 'P', delay: '5s' }));
  const { change: commit } = memory;
  Object.assign(memory, { change: async () => Promise.reject(lost()) });
  await assert.rejects(change.afterCommit(), /reply lost/);
  Object.assign(memory, { change: commit });
  assert.deepEqual([entry(KEY)?.state, tasks.created.length], ['unscheduled', 1]);
  await clock.advance(5_000);
  assert.deepEqual([entry(KEY)?.state, published()], ['delivered', ['P']]);
});

test('L12: a plain delay that is purged from the queue is lost without an entry, and put back with one', async () => {
  for (const ledgerFor of ['keys', 'all'] as const) {
    let isPurged = true;
    const { clock, deliver, message, sweep, published } = play({
      ledgerFor,
      wrapQueue: (queue) => ({
        ...queue,
        create: async (task) => (isPurged ? 'created' : queue.create(task)),
      }),
    });
    await deliver(message({ delay: '10' }, 'M0'));
    isPurged = false;
    await clock.advance(10_000 + 600_000);
    await sweep();
    await clock.advance(1_000);
    assert.deepEqual(published(), ledgerFor === 'all' ? ['M0'] : []);
  }
});
