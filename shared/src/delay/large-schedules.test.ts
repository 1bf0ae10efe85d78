/**
 * Large messages that have an entry in the schedule ledger: each version of the entry has one payload, however often its
 * message is delivered, and the one that is replaced or withdrawn is marked as done, whichever side gets to it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deadLettering } from '../dead-letter/dead-lettering.ts';
import { PermanentError, storeUnavailable } from '../errors.ts';
import { compose, type Context } from '../handler.ts';
import { silent } from '../log.ts';
import type { Message } from '../message.ts';
import { ack } from '../outcome.ts';
import { bytesOf } from '../payload/contract.ts';
import { memoryPayloads } from '../payload/memory.ts';
import { GRACE_MS, type PayloadStore } from '../payload/payload-store.ts';
import type { Ledger } from '../schedules/ledger.ts';
import { memoryLedger } from '../schedules/memory.ts';
import { memoryPublisher } from '../testing/memory-publisher.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { delay } from './delay.ts';
import { memoryTasks } from '../tasks/memory.ts';
import { republish } from './republish.ts';
import type { TaskQueue } from '../tasks/task-queue.ts';

const TOPIC = 'projects/p/topics/out';
const DAY_S = 86_400;
const signal = new AbortController().signal;

type Wraps = Readonly<{
  ledger?: (ledger: Ledger) => Ledger;
  payloads?: (payloads: PayloadStore) => PayloadStore;
  queue?: (queue: TaskQueue) => TaskQueue;
}>;

function world(wraps: Wraps = {}) {
  const clock = virtualClock();
  const queue = memoryTasks({ clock });
  const payloads = memoryPayloads({ clock });
  const ledger = memoryLedger({ clock });
  const target = memoryPublisher();
  const deadLetters = deadLettering(memoryPublisher(), 'dead');
  const stage = compose(
    async () => ack(),
    [
      deadLetters,
      delay(wraps.queue?.(queue) ?? queue, {
        clock,
        topic: TOPIC,
        payloads: wraps.payloads?.(payloads) ?? payloads,
        ledger: wraps.ledger?.(ledger) ?? ledger,
      }),
    ],
  );
  const run = republish(
    { publisher: target, queue, deadLetters },
    { allowedTopics: [TOPIC], payloads, ledger, clock, log: silent },
  );
  const context: Context = {
    consumer: 'c',
    source: 's',
    now: () => clock.now(),
    deadline: Number.MAX_SAFE_INTEGER,
    signal,
    log: silent,
  };
  const message = (id: string, attributes: Record<string, string>, bytes = 200_000): Message => ({
    id,
    data: bytesOf(bytes),
    attributes: { scheduleKey: 'k', ...attributes },
    publishTime: new Date(clock.now()),
  });
  return {
    clock,
    payloads,
    target,
    message,
    deliver: (given: Message) => stage(given, context),
    dispatch: () =>
      queue.dispatchTo((task, retryCount) =>
        run({ body: task.body, etaMs: task.scheduleTimeMs, retryCount }),
      ),
    stored: async (): Promise<number> => {
      await clock.advance(GRACE_MS + 1);
      await payloads.sweep({ signal });
      return payloads.stored();
    },
  };
}

test('the payload of a replaced delivery is done, the current one is delivered', async () => {
  const { clock, payloads, target, message, deliver, dispatch, stored } = world();
  await deliver(message('1', { delay: String(10 * DAY_S) }));
  await clock.advance(1);
  assert.deepEqual(await deliver(message('2', { delay: String(20 * DAY_S) }, 200_001)), ack('scheduled'));
  assert.equal(payloads.stored(), 2);
  assert.equal(await stored(), 1);
  dispatch();
  await clock.advance(20 * GRACE_MS);
  assert.deepEqual(
    target.published.map(({ data }) => data.length),
    [200_001],
  );
  assert.equal(await stored(), 0);
});

test('two messages of equal content under one key: replacing the first does not end the payload of the second', async () => {
  const { clock, target, message, deliver, dispatch, stored } = world();
  await deliver(message('1', { delay: String(10 * DAY_S) }));
  await clock.advance(1);
  await deliver(message('2', { delay: String(10 * DAY_S) }));
  assert.equal(await stored(), 1);
  dispatch();
  await clock.advance(10 * GRACE_MS);
  assert.equal(target.published.length, 1);
  assert.equal(await stored(), 0);
});

test('five deliveries of 9 MB store it once, before the due time, while it fires and after it', async () => {
  const { clock, payloads, target, message, deliver, dispatch, stored } = world();
  const given = message('1', { delay: String(10 * DAY_S) }, 9_000_000);
  for (let delivery = 0; delivery < 5; delivery += 1) {
    assert.deepEqual(await deliver(given), ack('scheduled'));
  }
  assert.equal(Math.round(payloads.storedBytes() / 1_000_000), 9);
  assert.equal(payloads.calls(), 1);
  dispatch();
  await clock.advance(10 * GRACE_MS);
  assert.equal(target.published.length, 1);
  const calls = payloads.calls();
  assert.deepEqual(await deliver(given), ack('duplicate'));
  assert.equal(payloads.calls(), calls);
  assert.equal(await stored(), 0);
});

/** A ledger whose n-th write is lost, as when the process dies before it. */
const dying = (n: number) => {
  let writes = 0;
  return (ledger: Ledger): Ledger => ({
    ...ledger,
    change: (id, rule) =>
      ledger.change(id, (entry, nowMs) => {
        const decision = rule(entry, nowMs);
        if (decision.entry !== undefined && (writes += 1) === n) throw storeUnavailable('the process dies');
        return decision;
      }),
  });
};

test('a delivery that dies before the entry leaves what the next one finds, and nothing for 60 days', async () => {
  const { clock, payloads, target, message, deliver, dispatch, stored } = world({ ledger: dying(1) });
  const given = message('1', { delay: String(10 * DAY_S) });
  assert.equal((await deliver(given)).kind, 'retry');
  assert.equal(payloads.stored(), 1);
  assert.deepEqual(await deliver(given), ack('scheduled'));
  assert.equal(payloads.stored(), 1);
  dispatch();
  await clock.advance(10 * GRACE_MS);
  assert.equal(target.published.length, 1);
  assert.equal(await stored(), 0);
});

test('what such a delivery left is done when its message comes again and is stale', async () => {
  const { clock, payloads, message, deliver, stored } = world({ ledger: dying(1) });
  const given = message('1', { delay: String(10 * DAY_S) });
  assert.equal((await deliver(given)).kind, 'retry');
  await clock.advance(1);
  assert.deepEqual(await deliver(message('2', { delay: String(10 * DAY_S) }, 1_000)), ack('scheduled'));
  assert.equal(payloads.stored(), 1);
  assert.deepEqual(await deliver(given), ack('stale'));
  assert.equal(await stored(), 0);
});

test('a delivery that the queue refused ends its own content and not that of the next one', async () => {
  let refuses = true;
  const ending = Promise.withResolvers<void>();
  const slow = Promise.withResolvers<void>();
  const { clock, target, message, deliver, dispatch, stored } = world({
    queue: (queue) => ({
      ...queue,
      create: (...args) =>
        refuses ? Promise.reject(new PermanentError('TASK_REFUSED', 'no')) : queue.create(...args),
    }),
    payloads: (payloads) => ({
      ...payloads,
      done: async (ref) => {
        ending.resolve();
        await slow.promise;
        await payloads.done(ref);
      },
    }),
  });
  const given = message('1', { delay: String(10 * DAY_S) });
  const first = deliver(given);
  await ending.promise;
  refuses = false;
  assert.deepEqual(await deliver(given), ack('scheduled'));
  slow.resolve();
  assert.equal((await first).kind, 'deadLetter');
  dispatch();
  await clock.advance(10 * GRACE_MS);
  assert.equal(target.published.length, 1, 'the content was gone before its task ran');
  assert.equal(await stored(), 0);
});

test('a redelivery stores nothing that stays, and a cancel ends what was stored', async () => {
  const { clock, target, message, deliver, dispatch, stored } = world();
  const given = message('1', { delay: String(10 * DAY_S) });
  await deliver(given);
  await deliver(given);
  assert.equal(await stored(), 1);
  await deliver(message('2', { cancel: 'true' }, 1));
  assert.equal(await stored(), 0);
  dispatch();
  await clock.advance(10 * GRACE_MS);
  assert.equal(target.published.length, 0);
});

test('a replaced one whose payload was not marked, because the store was down: its task marks it', async () => {
  for (const days of [10, 40]) {
    const { clock, payloads, target, message, deliver, dispatch, stored } = world();
    await deliver(message('1', { delay: String(days * DAY_S) }));
    await clock.advance(1);
    const second = message('2', { delay: String(60 * DAY_S) }, 1_000);
    // The call after the ones so far is the mark.
    payloads.failOn(payloads.calls() + 1, 'refused');
    await deliver(second);
    await deliver(second);
    assert.equal(payloads.stored(), 1);
    dispatch();
    await clock.advance(days * GRACE_MS);
    assert.equal(await stored(), 0, `${days} days`);
    await clock.advance(60 * GRACE_MS);
    assert.deepEqual(
      target.published.map(({ data }) => data.length),
      [1_000],
    );
  }
});
