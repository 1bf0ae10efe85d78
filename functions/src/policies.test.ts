/**
 * What the functions do by configuration where the guarantee ends: a conflict, and a claim store that is down.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { type Message, type OutgoingMessage, silent, TransientError } from 'pubsub-guarantees';
import type { ClaimStore } from 'pubsub-guarantees/dedup';
import { deliver, settle } from 'pubsub-guarantees/receive';
import { memoryClaims, memoryStreams } from 'pubsub-guarantees/testing';
import { virtualClock } from 'pubsub-guarantees/testing';
import { readConfig } from './config.ts';
import { pipeline } from './pipelines.ts';

const BASE = {
  GOOGLE_CLOUD_PROJECT: 'p',
  TARGET_TOPIC: 'out',
  DEAD_LETTER_TOPIC: 'dead-letters',
  SOURCE_TOPIC: 'source',
  DELAY_QUEUE: 'later',
  TASKS_LOCATION: 'us-central1',
};
const OUT = 'projects/p/topics/out';
const DEAD = 'projects/p/topics/dead-letters';

type Environment = Readonly<Record<string, string>>;

function setUp(
  target: 'dedup' | 'pipeline',
  environment: Environment,
  claims?: ClaimStore,
  isPublished = true,
) {
  const clock = virtualClock();
  const published: OutgoingMessage[] = [];
  const { handler } = pipeline(readConfig({ ...BASE, ...environment }, target), {
    clock,
    log: silent,
    publisher: {
      async publish(message) {
        if (!isPublished) throw new TransientError('DOWN', 'no answer');
        published.push(message);
        return '1';
      },
    },
    claims: claims ?? memoryClaims({ clock }),
    tasks: { overheadBytes: 0, create: () => Promise.reject(new Error('no task is expected')) },
    streams: memoryStreams({ clock }),
    ledger: undefined,
    payloads: undefined,
    subscriptionWindows: async () => undefined,
    evictionPolicy: Promise.resolve(undefined),
  });
  const send = async (id: string, text: string): Promise<'ack' | 'nack'> => {
    const message: Message = {
      id,
      data: Buffer.from(text),
      attributes: { dedupId: 'order-7' },
      publishTime: new Date(clock.now()),
      subscription: 'projects/p/subscriptions/in',
    };
    const options = { consumer: 'c', clock, log: silent, handlerTimeout: '60s' } as const;
    return settle(await clock.until(deliver(handler, message, options)));
  };
  const topics = (): string[] => published.map(({ topic }) => topic);
  return { send, published, topics };
}

for (const target of ['dedup', 'pipeline'] as const) {
  test(`${target}: other data under a used dedupId is a dead letter that names both messages`, async () => {
    const { send, published, topics } = setUp(target, {});
    assert.deepEqual([await send('17', 'A'), await send('18', 'B')], ['ack', 'ack']);
    assert.deepEqual(topics(), [OUT, DEAD]);
    const { deadLetterReason, deadLetterError = '' } = published[1]?.attributes ?? {};
    assert.equal(deadLetterReason, 'DEDUP_CONFLICT');
    assert.match(deadLetterError, /17.*18/);
  });

  test(`${target}: DEDUP_ON_CONFLICT=ack drops it, =process forwards it`, async () => {
    const dropping = setUp(target, { DEDUP_ON_CONFLICT: 'ack' });
    assert.deepEqual([await dropping.send('17', 'A'), await dropping.send('18', 'B')], ['ack', 'ack']);
    assert.deepEqual(dropping.topics(), [OUT]);
    const processing = setUp(target, { DEDUP_ON_CONFLICT: 'process' });
    assert.deepEqual([await processing.send('17', 'A'), await processing.send('18', 'B')], ['ack', 'ack']);
    assert.deepEqual(processing.topics(), [OUT, OUT]);
  });

  test(`${target}: with the store down nothing is forwarded, or all of it with DEDUP_ON_STORE_UNAVAILABLE=process`, async () => {
    const down = (): Promise<never> => Promise.reject(new TransientError('STORE_UNAVAILABLE', 'down'));
    const store: ClaimStore = { claim: down, renew: down, complete: down, release: down };
    const waiting = setUp(target, {}, store);
    assert.equal(await waiting.send('17', 'A'), 'nack');
    assert.deepEqual(waiting.topics(), []);
    const going = setUp(target, { DEDUP_ON_STORE_UNAVAILABLE: 'process' }, store);
    assert.equal(await going.send('17', 'A'), 'ack');
    assert.deepEqual(going.topics(), [OUT]);
  });
}

test('a conflict whose dead letter cannot be published is not acked', async () => {
  const clock = virtualClock();
  const claims = memoryClaims({ clock });
  const first = setUp('dedup', {}, claims);
  assert.equal(await first.send('17', 'A'), 'ack');
  const { send } = setUp('dedup', {}, claims, false);
  assert.equal(await send('18', 'B'), 'nack');
});
