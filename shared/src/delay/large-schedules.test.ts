/**
 * Large messages that have an entry in the schedule ledger: each generation has a payload of its own, and the one that is
 * replaced or withdrawn is marked as done, whichever side gets to it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deadLettering } from '../dead-letter/dead-lettering.ts';
import { compose, type Context } from '../handler.ts';
import { silent } from '../log.ts';
import type { Message } from '../message.ts';
import { ack } from '../outcome.ts';
import { bytesOf } from '../payload/contract.ts';
import { memoryPayloads } from '../payload/memory.ts';
import { GRACE_MS } from '../payload/payload-room.ts';
import { memoryLedger } from '../schedules/memory.ts';
import { memoryPublisher } from '../testing/memory-publisher.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { delay } from './delay.ts';
import { memoryTasks } from './memory.ts';
import { republish } from './republish.ts';

const TOPIC = 'projects/p/topics/out';
const DAY_S = 86_400;
const signal = new AbortController().signal;

function world() {
  const clock = virtualClock();
  const queue = memoryTasks({ clock });
  const payloads = memoryPayloads({ clock });
  const ledger = memoryLedger({ clock });
  const target = memoryPublisher();
  const deadLetters = deadLettering(memoryPublisher(), 'dead');
  const stage = compose(
    async () => ack(),
    [deadLetters, delay(queue, { clock, topic: TOPIC, payloads, ledger })],
  );
  const run = republish(
    { publisher: target, queue, deadLetters, payloads, ledger, clock, log: silent },
    { allowedTopics: [TOPIC] },
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
      await payloads.sweep(signal);
      return payloads.stored();
    },
  };
}

test('the payload of a replaced delivery is done, the one that stands is delivered', async () => {
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
