import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compose, type Context } from '../handler.ts';
import { silent } from '../log.ts';
import type { Publisher } from '../publish/publisher.ts';
import { ack } from '../outcome.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { delay } from './delay.ts';
import { memoryTasks } from '../tasks/memory.ts';
import { republish } from './republish.ts';

const DAY_S = 86_400;
const TOPIC = 'projects/p/topics/out';
const HOP_S = 29.5 * DAY_S;

type Skew = Readonly<{ stageMs?: number; republisherMs?: number }>;

/** One message through stage, queue and republisher; the queue's clock is the true one. */
async function travel(attributes: Record<string, string>, skew: Skew = {}) {
  const clock = virtualClock();
  const skewed = (milliseconds = 0) => ({ ...clock, now: () => clock.now() + milliseconds });
  const started = clock.now();
  const queue = memoryTasks({ clock });
  const arrivals: number[] = [];
  const publisher: Publisher = {
    publish: async () => String(arrivals.push((clock.now() - started) / 1_000)),
  };
  const run = republish(
    { publisher, queue, deadLetters: (next) => next },
    { allowedTopics: [TOPIC], clock: skewed(skew.republisherMs), log: silent },
  );
  // As Cloud Tasks says it: seconds with a fraction, later on a repeat.
  queue.dispatchTo(async (task, retryCount) => {
    // A task that is never done would be tried for eleven years.
    if (retryCount > 100) return { status: 204 };
    return run({ body: task.body, retryCount, etaMs: task.scheduleTimeMs + retryCount * 1_000 });
  });
  const options = { clock: skewed(skew.stageMs), topic: TOPIC };
  const direct = async () => {
    arrivals.push((clock.now() - started) / 1_000);
    return ack();
  };
  const context = { consumer: 'c', source: 's', log: silent } as unknown as Context;
  const message = { id: '1', data: Buffer.from('x'), attributes, publishTime: new Date(started) };
  const outcome = await compose(direct, [delay(queue, options)])(message, context);
  await clock.runToIdle(11 * 366 * DAY_S * 1_000);
  assert.equal(queue.pending(), 0);
  return { outcome, arrivals, tasks: queue.created.length };
}

const HORIZONS = {
  '0': 0,
  '1 s': 1,
  '29 days': 29 * DAY_S,
  '30 days': 30 * DAY_S,
  '31 days': 31 * DAY_S,
  '90 days': 90 * DAY_S,
  '10 years': 3_650 * DAY_S,
};
const hops = (seconds: number): number => Math.ceil(seconds / HOP_S);

for (const [name, seconds] of Object.entries(HORIZONS)) {
  test(`B22: ${name} ahead: arrives once, at its due time, after the expected number of tasks`, async () => {
    const { arrivals, tasks } = await travel({ delay: String(seconds) });
    assert.deepEqual(arrivals, [seconds]);
    assert.equal(tasks, hops(seconds));
  });

  test(`L9: ${name} ahead with clocks 20 s fast or slow: arrives once, never early`, async () => {
    for (const stageMs of [-20_000, 20_000]) {
      for (const republisherMs of [-20_000, 20_000]) {
        const { arrivals, tasks } = await travel({ delay: String(seconds) }, { stageMs, republisherMs });
        assert.equal(arrivals.length, 1);
        const late = (arrivals[0] ?? 0) - seconds;
        assert.ok(late >= 0 && late <= 20, `${late} s late`);
        // A slow republisher takes its final task for 20, 15 and 10 s early: three rests of 5 s, then a wait.
        const rests = seconds > 0 && republisherMs < 0 ? 3 : 0;
        assert.ok(tasks <= hops(seconds) + rests + 1, `${tasks} tasks`);
      }
    }
  });
}

test('L9: one clock that is wrong by an hour, a day or a month makes nothing early', async () => {
  for (const skewMs of [3_600_000, DAY_S * 1_000, 31 * DAY_S * 1_000]) {
    for (const skew of [{ stageMs: skewMs }, { republisherMs: skewMs }]) {
      for (const seconds of [1, 60, 29 * DAY_S, 90 * DAY_S]) {
        const { arrivals } = await travel({ delay: String(seconds) }, skew);
        assert.deepEqual(arrivals, [seconds], JSON.stringify({ skew, seconds }));
      }
    }
  }
});

test('L9: every distance to the next hop, to the second, with a fast clock: never early', async () => {
  for (const beyond of [-31, -30, -22, -10, -5, -2, -1, 0, 1, 2, 5, 10, 22, 30, 31]) {
    for (const republisherMs of [-20_000, 0, 20_000]) {
      const seconds = HOP_S + beyond;
      const { arrivals } = await travel({ delay: String(seconds) }, { stageMs: 20_000, republisherMs });
      assert.equal(arrivals.length, 1);
      assert.ok((arrivals[0] ?? 0) >= seconds, `${seconds - (arrivals[0] ?? 0)} s early`);
    }
  }
});

test('B22: ten years and a second are refused, as a delay and as a due time', async () => {
  const seconds = 3_650 * DAY_S + 1;
  const deliverAt = new Date(virtualClock().now() + seconds * 1_000).toISOString();
  for (const attributes of [{ delay: String(seconds) }, { deliverAt }]) {
    const { outcome, arrivals, tasks } = await travel(attributes);
    assert.equal(outcome.kind, 'deadLetter');
    assert.deepEqual([arrivals.length, tasks], [0, 0]);
  }
});
