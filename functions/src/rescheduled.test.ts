import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Message, silent } from 'pubsub-guarantees';
import type { ClaimStore } from 'pubsub-guarantees/dedup';
import { republish } from 'pubsub-guarantees/delay';
import { deliver } from 'pubsub-guarantees/receive';
import type { Task } from 'pubsub-guarantees/tasks';
import { memoryClaims, memoryStreams } from 'pubsub-guarantees/testing';
import { memoryPublisher, virtualClock } from 'pubsub-guarantees/testing';
import { readConfig } from './config.ts';
import { pipeline } from './pipelines.ts';

const SOURCE = 'projects/p/topics/source';
const ENVIRONMENT = {
  GOOGLE_CLOUD_PROJECT: 'p',
  TARGET_TOPIC: 'out',
  DEAD_LETTER_TOPIC: 'dead-letters',
  SOURCE_TOPIC: 'source',
  DELAY_QUEUES: 'a,b',
  TASKS_LOCATION: 'us-central1',
};

test('pipeline: a message that another delivery is processing comes back by a task, and not as one more delivery attempt', async () => {
  const clock = virtualClock();
  const own = memoryClaims({ clock });
  // Another delivery holds the claim for the first 40 s.
  const claims: ClaimStore = {
    ...own,
    claim: (...request) =>
      clock.monotonic() < 40_000
        ? Promise.resolve({ kind: 'inProgress', remainingMs: 30_000 })
        : own.claim(...request),
  };
  const publisher = memoryPublisher();
  const tasks: Task[] = [];
  const queue = {
    overheadBytes: 0,
    async create(task: Task) {
      tasks.push(task);
      return 'created' as const;
    },
  };
  const { handler, sweeps } = pipeline(readConfig(ENVIRONMENT, 'pipeline'), {
    clock,
    log: silent,
    publisher,
    claims,
    tasks: queue,
    streams: memoryStreams({ clock }),
    ledger: undefined,
    payloads: undefined,
    subscriptionWindows: async () => undefined,
    evictionPolicy: Promise.resolve(undefined),
  });
  assert.deepEqual(Object.keys(sweeps), ['order']);
  const receive = (id: string, attributes: Message['attributes']): Promise<unknown> => {
    const publishTime = new Date(clock.now());
    const message = { id, data: Buffer.from('x'), attributes, publishTime, subscription: 'in' };
    return clock.until(
      deliver(handler, message, { consumer: 'c', clock, log: silent, handlerTimeout: '30s' }),
    );
  };
  const outcome = (await receive('1', {})) as { kind: string; reason?: string };
  assert.deepEqual([outcome.kind, outcome.reason], ['ack', 'scheduled']);
  assert.equal(tasks.length, 1);
  assert.equal(publisher.published.length, 0);

  await clock.advance(60_000);
  const run = republish(
    { publisher, queue, deadLetters: (next) => next },
    { allowedTopics: [SOURCE], clock, log: silent },
  );
  assert.deepEqual(await run({ body: tasks[0]!.body }), { status: 204 });
  const back = publisher.published[0]!;
  assert.deepEqual([back.topic, back.attributes['dedupId']], [SOURCE, 'in/1']);
  await receive('2', back.attributes);
  assert.equal(publisher.published[1]?.topic, 'projects/p/topics/out');
  assert.equal(publisher.published[1]?.attributes['retryAttempt'], undefined);
});
