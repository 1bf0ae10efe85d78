/** Delayed messages on their way through `pipeline`: out by its delay stage, back in through its own source. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Message, silent } from 'pubsub-guarantees';
import { deadLettering } from 'pubsub-guarantees/dead-letters';
import { republish } from 'pubsub-guarantees/delay';
import { deliver } from 'pubsub-guarantees/receive';
import type { Task } from 'pubsub-guarantees/tasks';
import { memoryClaims, memoryLedger, memoryStreams } from 'pubsub-guarantees/testing';
import { memoryPublisher, virtualClock } from 'pubsub-guarantees/testing';
import { readConfig } from './config.ts';
import { pipeline } from './pipelines.ts';

const SOURCE = 'projects/p/topics/source';
const TARGET = 'projects/p/topics/out';
const HOUR_MS = 3_600_000;

function play(environment: Record<string, string> = {}) {
  const clock = virtualClock();
  const publisher = memoryPublisher();
  const ledger = memoryLedger({ clock });
  const tasks = new Map<string, Task>();
  const queue = {
    overheadBytes: 0,
    async create(task: Task) {
      if (tasks.has(task.name)) return 'exists' as const;
      tasks.set(task.name, task);
      return 'created' as const;
    },
  };
  const config = readConfig(
    {
      GOOGLE_CLOUD_PROJECT: 'p',
      TARGET_TOPIC: TARGET,
      DEAD_LETTER_TOPIC: 'dead-letters',
      SOURCE_TOPIC: SOURCE,
      DELAY_QUEUE: 'a',
      TASKS_LOCATION: 'us-central1',
      ...environment,
    },
    'pipeline',
  );
  const { handler } = pipeline(config, {
    clock,
    log: silent,
    publisher,
    claims: memoryClaims({ clock }),
    tasks: queue,
    streams: memoryStreams({ clock }),
    ledger,
    payloads: undefined,
    subscriptionWindows: async () => undefined,
    evictionPolicy: Promise.resolve(undefined),
  });
  const answer = republish(
    { publisher, queue, deadLetters: deadLettering(publisher, 'dead') },
    { allowedTopics: [SOURCE], ledger, clock, log: silent },
  );
  let ids = 0;
  const message = (attributes: Message['attributes'], data: Uint8Array = Buffer.from('x')): Message => {
    ids += 1;
    const publishTime = new Date(clock.now());
    return { id: String(ids), data: Buffer.from(data), attributes, publishTime, subscription: 'in' };
  };
  const receive = async (received: Message): Promise<string> => {
    const options = { consumer: 'c', clock, log: silent, handlerTimeout: '30s' } as const;
    const outcome = await clock.until(deliver(handler, received, options));
    return outcome.kind === 'ack' ? outcome.reason : outcome.kind;
  };
  /** Runs every task that is due, and hands back what it publishes, as Pub/Sub would. */
  const due = async (): Promise<readonly string[]> => {
    const before = publisher.published.length;
    for (const { body, scheduleTimeMs } of tasks.values()) {
      if (scheduleTimeMs <= clock.now()) assert.ok((await answer({ body })).status < 300);
    }
    const back = publisher.published.slice(before).filter(({ topic }) => topic === SOURCE);
    const reasons: string[] = [];
    for (const { attributes, data } of back) reasons.push(await receive(message(attributes, data)));
    return reasons;
  };
  const forwarded = () => publisher.published.filter(({ topic }) => topic === TARGET);
  return { clock, ledger, tasks, message, receive, due, forwarded };
}

for (const DELAY_LEDGER of ['keys', 'all']) {
  test(`B35: what comes back is no repeat of what was put aside, however long that was, nor is a repeat of it new (${DELAY_LEDGER})`, async () => {
    const { clock, message, receive, due, forwarded } = play({ DELAY_LEDGER, DEDUP_RETENTION: '1h' });
    const delayed = message({ delay: '7200', tenant: 'a' });
    assert.equal(await receive(delayed), 'scheduled');
    await clock.advance(HOUR_MS);
    assert.equal(await receive(delayed), 'scheduled');
    await clock.advance(HOUR_MS);
    assert.deepEqual(await due(), ['handled']);
    const [{ attributes }] = forwarded() as [ReturnType<typeof forwarded>[0]];
    assert.deepEqual([attributes['tenant'], attributes['dedupId']], ['a', 'in/1']);
    // The source message once more, after its due time: whichever way the function takes, the message is known.
    await clock.advance(60_000);
    assert.equal(await receive(delayed), 'duplicate');
    assert.deepEqual(forwarded().length, 1);
  });
}

test('a schedule by key goes through the pipeline: replaced, withdrawn, too late, and anew', async () => {
  const { clock, message, receive, due, forwarded } = play();
  const texts = () => forwarded().map(({ data }) => Buffer.from(data).toString());
  const send = (text: string, asked: Record<string, string>, scheduleKey = 'k') =>
    receive(message({ scheduleKey, ...asked }, Buffer.from(text)));
  await send('one', { delay: '60' });
  await clock.advance(1_000);
  await send('two', { delay: '120' });
  await send('withdrawn', { delay: '60' }, 'other');
  await clock.advance(1_000);
  assert.equal(await send('', { cancel: 'true' }, 'other'), 'cancelled');
  await clock.advance(60_000);
  assert.deepEqual([await due(), texts()], [[], []]);
  await clock.advance(60_000);
  assert.deepEqual([await due(), texts()], [['handled'], ['two']]);
  assert.equal(await send('', { cancel: 'true' }), 'stale', 'it has been delivered');
  await clock.advance(1_000);
  await send('in the past', { deliverAt: '1969-07-20T20:17:40Z' });
  await clock.advance(1_000);
  assert.deepEqual([await due(), texts()], [['handled'], ['two', 'in the past']]);
  const { scheduleKey, deliverAt, delay } = forwarded()[1]!.attributes;
  assert.deepEqual([scheduleKey, deliverAt, delay], [undefined, undefined, undefined]);
});

test('attributes of the longest values keep their room through delay, ledger and pipeline', async () => {
  const { clock, message, receive, due, forwarded } = play();
  const [dedupId, scheduleKey] = ['d', 'k'].map((letter) => letter.repeat(1_024)) as [string, string];
  const theirs = Object.fromEntries(Array.from({ length: 97 }, (_, n) => [`a${n}`, 'x']));
  assert.equal(await receive(message({ ...theirs, dedupId, scheduleKey, delay: '1' })), 'scheduled');
  await clock.advance(1_000);
  assert.deepEqual(await due(), ['handled']);
  const { attributes } = forwarded()[0]!;
  assert.deepEqual([Object.keys(attributes).length, attributes['dedupId']], [100, dedupId]);
  for (const name of Object.keys(theirs)) assert.equal(attributes[name], 'x');
});
