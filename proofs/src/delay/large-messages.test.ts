/**
 * Messages that are larger than a task, from the stage to the publisher, with a failure at each call of each port.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deadLettering } from '../../../shared/src/dead-letter/dead-lettering.ts';
import { PermanentError } from '../../../shared/src/errors.ts';
import { compose, type Context } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import { LIMITS, type Message, messageBytes } from '../../../shared/src/message.ts';
import { ack, type Outcome } from '../../../shared/src/outcome.ts';
import { bytesOf } from '../../../shared/src/payload/contract.ts';
import { memoryPayloads } from '../../../shared/src/payload/memory.ts';
import {
  GRACE_MS,
  KEEP_MS,
  type PayloadStore,
  REPEAT_MARGIN_MS,
} from '../../../shared/src/payload/payload-store.ts';
import { opened } from '../payload/firestore-store.ts';
import { memoryPublisher } from '../../../shared/src/testing/memory-publisher.ts';
import { virtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import { delay } from '../../../shared/src/delay/delay.ts';
import { memoryTasks } from '../../../shared/src/tasks/memory.ts';
import { republish } from '../../../shared/src/delay/republish.ts';
import type { TaskAnswer } from '../../../shared/src/delay/task-answer.ts';

const TOPIC = 'projects/p/topics/out';
const MINUTE_MS = 60_000;
const signal = new AbortController().signal;

/** 100 attributes of 256 + 1,024 bytes, one of them the delay, in 10,000,000 bytes that are no UTF-8. */
function largest(publishTime: Date, seconds: number): Message {
  const attributes: Record<string, string> = { delay: String(seconds) };
  for (let n = 1; n < LIMITS.attributes; n += 1) attributes[`é${n}`.padEnd(255, 'k')] = 'ü'.repeat(512);
  const used = messageBytes({ data: Buffer.alloc(0), attributes });
  return { id: '7', data: bytesOf(LIMITS.messageBytes - used), attributes, publishTime };
}

function world(options: Readonly<{ payloads?: PayloadStore; maxAttempts?: number; startMs?: number }> = {}) {
  const clock = virtualClock(options.startMs);
  const queue = memoryTasks({ clock });
  const target = memoryPublisher();
  const dead = memoryPublisher();
  const memory = memoryPayloads({ clock });
  const payloads = options.payloads ?? memory;
  let refusal: PermanentError | undefined;
  const publisher: typeof target = {
    ...target,
    publish: (message) => (refusal === undefined ? target.publish(message) : Promise.reject(refusal)),
  };
  const deadLetters = deadLettering(dead, 'dead');
  const stage = compose(async () => ack(), [deadLetters, delay(queue, { clock, topic: TOPIC, payloads })]);
  const { maxAttempts } = options;
  const run = republish(
    { publisher, queue, deadLetters },
    {
      allowedTopics: [TOPIC],
      payloads,
      clock,
      log: silent,
      ...(maxAttempts !== undefined && { maxAttempts }),
    },
  );
  const context: Context = {
    consumer: 'c',
    source: 's',
    now: () => clock.now(),
    deadline: Number.MAX_SAFE_INTEGER,
    signal,
    log: silent,
  };
  const answers: number[] = [];
  return {
    clock,
    queue,
    target,
    dead,
    payloads,
    memory,
    answers,
    refuseWith: (error: PermanentError | undefined) => void (refusal = error),
    deliver: (message: Message): Promise<Outcome> => stage(message, context),
    run: (index: number, retryCount = 0): Promise<TaskAnswer> => {
      const task = queue.created[index];
      assert.ok(task !== undefined);
      return run({ body: task.body, etaMs: task.scheduleTimeMs, retryCount });
    },
    dispatch: () =>
      queue.dispatchTo(async (task, retryCount) => {
        const answer = await run({ body: task.body, etaMs: task.scheduleTimeMs, retryCount });
        answers.push(answer.status);
        return answer;
      }),
    /** As Pub/Sub does: again until it is acknowledged. */
    deliverUntilAck: async (message: Message): Promise<void> => {
      for (let tries = 0; tries < 5; tries += 1) {
        if ((await stage(message, context)).kind === 'ack') return;
      }
      assert.fail('not acknowledged');
    },
  };
}

const small = (publishTime: Date, change: Record<string, string> = {}): Message => ({
  id: '7',
  data: bytesOf(200_000),
  attributes: { delay: '60', dedupId: 'mine', ...change },
  publishTime,
});

for (const kind of ['memory', 'Firestore'] as const) {
  test(`B24, B25: a message at every limit arrives byte for byte through ${kind}`, async () => {
    const server = kind === 'Firestore' ? await opened() : undefined;
    try {
      const { clock, deliver, dispatch, queue, target, run, memory } = world({
        ...(server !== undefined && { payloads: server.store, startMs: Date.now() }),
      });
      const message = largest(new Date(clock.now()), 60);
      assert.equal(messageBytes(message), LIMITS.messageBytes);
      assert.deepEqual(await deliver(message), ack('scheduled'));
      assert.ok((queue.created[0]?.body.length ?? Infinity) <= 102_400);
      if (server === undefined) {
        dispatch();
        await clock.advance(MINUTE_MS);
      } else {
        // Firestore answers in its own time, which the moved clock does not wait for.
        await clock.advance(MINUTE_MS);
        assert.deepEqual(await run(0), { status: 204 });
      }
      const { delay: _applied, ...attributes } = message.attributes;
      const [published] = target.published;
      assert.equal(target.published.length, 1);
      assert.ok(message.data.equals(published?.data ?? Buffer.alloc(0)));
      assert.deepEqual(published?.attributes, attributes);
      assert.equal(memory.calls(), server === undefined ? 3 : 0);
      server?.pass(GRACE_MS + 1);
      await server?.store.sweep({ signal });
      assert.equal((await server?.storedBytes()) ?? 0, 0);
    } finally {
      await server?.close();
    }
  });
}

test('a failure at any call of the stage or the republisher: nothing is lost, early or changed, and the payload store empties', async () => {
  let cases = 0;
  for (const port of ['payloads', 'queue', 'publisher'] as const) {
    for (const how of ['refused', 'reply lost'] as const) {
      for (let call = 1; call <= 3; call += 1) {
        const { clock, deliverUntilAck, dispatch, queue, target, memory, dead } = world();
        if (port === 'payloads') memory.failOn(call, how);
        else if (port === 'queue') queue.failOn(call, how);
        else target.failOn(call, how);
        const what = `${port} call ${call}: ${how}`;
        const message = small(new Date(clock.now()));
        await deliverUntilAck(message);
        // The acknowledgement is lost as well.
        await deliverUntilAck(message);
        dispatch();
        await clock.advance(MINUTE_MS - 1);
        assert.equal(target.published.length, 0, what);
        await clock.advance(MINUTE_MS);
        const repeats = port === 'publisher' && how === 'reply lost' && call === 1 ? 2 : 1;
        assert.equal(target.published.length, repeats, what);
        for (const { data, attributes } of target.published) {
          assert.ok(message.data.equals(data), what);
          assert.equal(attributes['dedupId'], 'mine');
        }
        assert.equal(queue.pending(), 0, what);
        assert.equal(dead.published.length, 0, what);
        await clock.advance(KEEP_MS + GRACE_MS + REPEAT_MARGIN_MS);
        await memory.sweep({ signal });
        assert.equal(memory.stored(), 0, what);
        cases += 1;
      }
    }
  }
  assert.equal(cases, 18);
});

test('a mark of done that fails costs no second publish; the payload expires', async () => {
  for (const how of ['refused', 'reply lost'] as const) {
    const { clock, deliver, run, target, memory } = world();
    await deliver(small(new Date(clock.now())));
    await clock.advance(MINUTE_MS);
    memory.failOn(3, how);
    assert.deepEqual(await run(0), { status: 204 });
    assert.equal(target.published.length, 1);
    await clock.advance(KEEP_MS + 2 * GRACE_MS);
    await memory.sweep({ signal });
    assert.equal(memory.stored(), 0);
  }
});

test('a task that runs again after its delivery publishes nothing more, whether the payload is still there or not', async () => {
  const { clock, deliver, run, target, dead, memory } = world();
  await deliver(small(new Date(clock.now())));
  await clock.advance(MINUTE_MS);
  for (const pause of [0, 0, GRACE_MS + 1, 30 * GRACE_MS]) {
    await clock.advance(pause);
    await memory.sweep({ signal });
    assert.deepEqual(await run(0), { status: 204 });
    assert.equal(target.published.length, 1);
  }
  assert.equal(dead.published.length, 0);
});

test('two runs of a task at once publish the same dedupId, and both are answered with success', async () => {
  const { clock, deliver, run, target } = world();
  await deliver(small(new Date(clock.now())));
  await clock.advance(MINUTE_MS);
  assert.deepEqual(await Promise.all([run(0), run(0, 1)]), [{ status: 204 }, { status: 204 }]);
  assert.deepEqual(
    new Set(target.published.map(({ attributes }) => attributes['dedupId'])),
    new Set(['mine']),
  );
});

test('a source message that comes again before the due time, while it fires or long after: never a task without its payload', async () => {
  const { clock, deliver, run, queue, target, dead, memory } = world();
  const message = small(new Date(clock.now()));
  await deliver(message);
  await deliver(message);
  assert.equal(memory.stored(), 1);
  assert.equal(queue.created.length, 1);
  await clock.advance(MINUTE_MS);
  await Promise.all([run(0), deliver(message)]);
  await clock.advance(40 * GRACE_MS);
  await memory.sweep({ signal });
  // The queue has forgotten the name by now, and no clock but the stage's own says that the message is due: another
  // task is made, like the first.
  assert.deepEqual(await deliver(message), ack('scheduled'));
  await run(queue.created.length - 1);
  assert.equal(target.published.length, 2);
  assert.equal(new Set(target.published.map(({ attributes }) => attributes['dedupId'])).size, 1);
  assert.equal(dead.published.length, 0);
});

test('over ten years every hop carries the reference alone, and the payload is there at the end', async () => {
  const { clock, deliver, dispatch, queue, target, memory } = world();
  const message = small(new Date(clock.now()), { delay: '315360000' });
  await deliver(message);
  dispatch();
  const years = clock.now() + 315_360_000_000;
  while (clock.now() < years - 1) {
    assert.equal(target.published.length, 0);
    await clock.advance(Math.min(29.5 * GRACE_MS, years - 1 - clock.now()));
    await memory.sweep({ signal });
  }
  assert.equal(memory.calls(), 1);
  await clock.advance(1);
  assert.equal(queue.created.length, 124);
  assert.ok(message.data.equals(target.published[0]?.data ?? Buffer.alloc(0)));
});

test('a store that is down at the due time is answered 503 until it is up', async () => {
  const { clock, deliver, dispatch, target, memory, answers } = world();
  await deliver(small(new Date(clock.now())));
  for (const call of [2, 3]) memory.failOn(call, 'refused');
  dispatch();
  await clock.advance(MINUTE_MS + 10_000);
  assert.deepEqual(answers, [503, 503, 204]);
  assert.equal(target.published.length, 1);
});

test('a payload that is gone makes one dead letter, which holds what the task has', async () => {
  const { clock, deliver, run, target, dead, memory } = world();
  await deliver(small(new Date(clock.now()), { tenant: 'a' }));
  await clock.advance(KEEP_MS + 2 * GRACE_MS);
  await memory.sweep({ signal });
  assert.deepEqual(await run(0), { status: 200 });
  assert.equal(target.published.length, 0);
  const [letter] = dead.published;
  assert.equal(letter?.attributes['deadLetterReason'], 'PAYLOAD_MISSING');
  assert.match(letter?.attributes['deadLetterError'] ?? '', /payload [A-Za-z0-9_-]{43} is not there/);
  assert.equal(letter?.attributes['dedupId'], 'mine');
  assert.equal(letter?.attributes['tenant'], 'a');
  assert.equal(letter?.data.length, 0);
});

test('a message that can never be published is dead-lettered whole, and only then is its payload done', async () => {
  const { clock, deliver, run, target, dead, memory, refuseWith } = world();
  const message = small(new Date(clock.now()));
  await deliver(message);
  await clock.advance(MINUTE_MS);
  refuseWith(new PermanentError('PUBLISH_REFUSED', 'deleted'));
  dead.failOn(1, 'refused');
  assert.deepEqual(await run(0), { status: 503 });
  assert.deepEqual(await run(0), { status: 200 });
  assert.ok(message.data.equals(dead.published[0]?.data ?? Buffer.alloc(0)));
  assert.equal(dead.published[0]?.attributes['deadLetterReason'], 'PUBLISH_REFUSED');
  refuseWith(undefined);
  assert.deepEqual(await run(0), { status: 204 });
  assert.equal(target.published.length, 0);
  await clock.advance(GRACE_MS + 1);
  await memory.sweep({ signal });
  assert.equal(memory.stored(), 0);
});

test('on the last attempts with store and queue down the dead letter holds what the task has, and the payload is kept', async () => {
  const { clock, deliver, run, dead, memory, queue } = world({ maxAttempts: 3 });
  await deliver(small(new Date(clock.now())));
  await clock.advance(MINUTE_MS);
  for (const call of [2, 3, 4]) memory.failOn(call, 'refused');
  queue.failOn(2, 'refused');
  assert.deepEqual(await run(0, 0), { status: 503 });
  assert.deepEqual(await run(0, 1), { status: 200 });
  assert.equal(dead.published[0]?.attributes['deadLetterReason'], 'STORE_UNAVAILABLE');
  await clock.advance(GRACE_MS + 1);
  await memory.sweep({ signal });
  assert.equal(memory.stored(), 1);
});

test('on the last attempts with the store down alone another task takes the place of this one', async () => {
  const { clock, deliver, run, dead, memory, queue, target } = world({ maxAttempts: 3 });
  await deliver(small(new Date(clock.now())));
  await clock.advance(MINUTE_MS);
  for (const call of [2, 3]) memory.failOn(call, 'refused');
  assert.deepEqual(await run(0, 0), { status: 503 });
  assert.deepEqual(await run(0, 1), { status: 204 });
  await clock.advance(MINUTE_MS);
  assert.deepEqual(await run(1), { status: 204 });
  assert.deepEqual(await run(2), { status: 204 });
  assert.deepEqual([target.published.length, dead.published.length, queue.created.length], [1, 0, 3]);
});
