import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { deadLettering } from '../dead-letter/dead-lettering.ts';
import { dedup } from '../dedup/dedup.ts';
import { memoryClaims } from '../dedup/memory.ts';
import { contextFor } from '../context.ts';
import { TransientError } from '../errors.ts';
import { compose, type Handler } from '../handler.ts';
import { silent } from '../log.ts';
import type { Message, OutgoingMessage } from '../message.ts';
import { ack, retry } from '../outcome.ts';
import { settle } from '../receive/settle.ts';
import { memoryPublisher } from '../testing/memory-publisher.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { memoryTasks } from '../tasks/memory.ts';
import { republish } from './republish.ts';
import { retryLater } from './retry-later.ts';

const TOPIC = 'projects/p/topics/in';
const REDELIVERY_MS = 10_000;

/** One message: how often its handler asks for a pause, how long, and what goes wrong at which call. */
type Program = Readonly<{
  pauses: readonly number[];
  creates: readonly ('ok' | 'refused' | 'reply lost')[];
  publishes: readonly ('ok' | 'refused' | 'reply lost')[];
  /** Of the n-th delivery: its acknowledgement arrives, is lost, or the process dies before the work and after it. */
  ends: readonly ('ok' | 'ack lost' | 'died before')[];
}>;

async function play(program: Program) {
  const clock = virtualClock();
  const queue = memoryTasks({ clock });
  const dead = memoryPublisher();
  const mistakes = <How extends string>(list: readonly How[]) => {
    let calls = 0;
    return (): How | 'ok' => list[calls++] ?? 'ok';
  };
  program.creates.forEach((how, n) => how !== 'ok' && queue.failOn(n + 1, how));
  const publishFault = mistakes(program.publishes);
  const end = mistakes(program.ends);
  const effects: number[] = [];
  let runs = 0;
  let ids = 0;
  let deliveries = 0;
  const handle: Handler = async () => {
    const pauseMs = program.pauses[runs++];
    if (pauseMs !== undefined) return retry(new TransientError('BUSY', 'busy'), `${pauseMs}ms`);
    effects.push(clock.monotonic());
    return ack();
  };
  const handler = compose(handle, [
    deadLettering(dead, 'dead'),
    retryLater(queue, { clock, topic: TOPIC }),
    dedup(memoryClaims({ clock }), { clock }),
  ]);
  const receive = ({ data, attributes }: Omit<OutgoingMessage, 'topic'>): void => {
    const message = { id: String((ids += 1)), data: Buffer.from(data), attributes };
    const publishTime = new Date(clock.now());
    clock.after(0, () => void deliver({ ...message, publishTime }));
  };
  const deliver = async (message: Message): Promise<void> => {
    deliveries += 1;
    const how = end();
    const again = (): void => void clock.after(REDELIVERY_MS, () => void deliver(message));
    if (how === 'died before') return again();
    const outcome = await handler(message, contextFor(clock, { consumer: 'c', source: 's' }));
    if (settle(outcome) === 'nack' || how === 'ack lost') again();
  };
  const publisher = {
    async publish(message: OutgoingMessage) {
      const how = publishFault();
      if (how !== 'refused') receive(message);
      if (how !== 'ok') throw new TransientError('PUBLISH_FAILED', how);
      return 'id';
    },
  };
  const run = republish(
    { publisher, queue, deadLetters: deadLettering(dead, 'dead') },
    { allowedTopics: [TOPIC], clock, log: silent },
  );
  const early: number[] = [];
  queue.dispatchTo(async ({ body, scheduleTimeMs }, retryCount) => {
    if (clock.now() < scheduleTimeMs) early.push(scheduleTimeMs);
    return run({ body, etaMs: scheduleTimeMs, retryCount });
  });
  receive({ data: Buffer.from('x'), attributes: {} });
  await clock.runToIdle(40 * 86_400_000);
  return { effects, early, queue, dead, deliveries, timers: clock.pending() };
}

const fault = fc.constantFrom('ok', 'ok', 'refused', 'reply lost');
const programs: fc.Arbitrary<Program> = fc.record({
  pauses: fc.array(fc.integer({ min: 1, max: 700_000 }), { maxLength: 5 }),
  creates: fc.array(fault, { maxLength: 8 }),
  publishes: fc.array(fault, { maxLength: 8 }),
  ends: fc.array(fc.constantFrom('ok', 'ok', 'ack lost', 'died before'), { maxLength: 10 }),
});

test('whatever fails and whenever: the effect comes once, nothing is left over, and nothing is a dead letter', async () => {
  await fc.assert(
    fc.asyncProperty(programs, async (program) => {
      const { effects, early, queue, dead, timers } = await play(program);
      assert.equal(effects.length, 1);
      assert.deepEqual(early, []);
      assert.deepEqual([queue.pending(), timers, dead.published.length], [0, 0, 0]);
      assert.equal(new Set(queue.created.map(({ name }) => name)).size, queue.created.length);
    }),
    { numRuns: 500 },
  );
});
