/**
 * Attributes that only look like those of the contract, before each function as it is put together.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { type Message, type OutgoingMessage, silent } from 'pubsub-guarantees';
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

function setUp(target: string, environment: Readonly<Record<string, string>> = {}) {
  const clock = virtualClock();
  const published: OutgoingMessage[] = [];
  const warned: string[] = [];
  const { handler } = pipeline(readConfig({ ...BASE, ...environment }, target), {
    clock,
    log: silent,
    publisher: {
      publish: async (message) => String(published.push(message)),
    },
    claims: memoryClaims({ clock }),
    tasks: { overheadBytes: 0, create: async () => 'created' },
    streams: memoryStreams({ clock }),
    ledger: undefined,
    payloads: undefined,
    subscriptionWindows: async () => undefined,
    evictionPolicy: Promise.resolve(undefined),
  });
  const log = {
    ...silent,
    warn: (_: string, fields: Readonly<Record<string, unknown>> = {}) => {
      if (fields['event'] === 'suspicious_attribute') warned.push(String(fields['attribute']));
    },
  };
  let id = 0;
  /** To what topic it went, and with what reason. */
  const send = async (attributes: Readonly<Record<string, string>>): Promise<string> => {
    const message: Message = {
      id: String((id += 1)),
      data: Buffer.from('x'),
      attributes,
      publishTime: new Date(clock.now()),
      subscription: 'projects/p/subscriptions/s',
    };
    const before = published.length;
    const options = { consumer: target, clock, log, handlerTimeout: '60s' } as const;
    assert.equal(settle(await clock.until(deliver(handler, message, options))), 'ack');
    return published
      .slice(before)
      .map(({ topic, attributes: out }) => `${topic.slice(18)} ${out['deadLetterReason'] ?? ''}`.trim())
      .join();
  };
  return { send, warned };
}

/** For each function what it passes on with a warning. */
const SUSPICIOUS = {
  dedup: [{ dedupID: 'x' }, { delay: '60' }, { sequence: '1', sequenceKey: 'k' }],
  delay: [{ 'dedup-id': 'x' }, { Delay: '60' }, { sequence: '1', sequenceKey: 'k' }],
  fifo: [{ Sequence: '1', sequence: '1', sequenceKey: 'k' }, { tenant: 'a' }],
  pipeline: [{ dedupID: 'x' }, { deliver_at: 'soon' }],
} as const;

for (const [target, messages] of Object.entries(SUSPICIOUS)) {
  test(`${target} passes on what only looks like the contract, and warns`, async () => {
    for (const attributes of messages) {
      const { send, warned } = setUp(target);
      assert.equal(await send(attributes as Readonly<Record<string, string>>), 'out');
      assert.equal(warned.length, 1, JSON.stringify(attributes));
    }
  });

  test(`${target} with STRICT_ATTRIBUTES=on gives it to the dead letters`, async () => {
    for (const attributes of messages) {
      const { send, warned } = setUp(target, { STRICT_ATTRIBUTES: 'on' });
      const went = await send(attributes as Readonly<Record<string, string>>);
      assert.equal(went, 'dead-letters ATTRIBUTE_REFUSED');
      assert.deepEqual(warned, []);
    }
  });
}

test('attributes that the function applies are passed without a warning, also where it is strict', async () => {
  for (const [target, attributes] of [
    ['dedup', { dedupId: 'x', tenant: 'a' }],
    ['fifo', { sequence: '1', sequenceKey: 'k' }],
    ['pipeline', { sequence: '1', sequenceKey: 'k' }],
    ['pipeline', {}],
    // What `fifo` in front has applied.
    ['dedup', { sequence: '7', sequenceKey: 'k', fencingToken: '3' }],
  ] as const) {
    const { send, warned } = setUp(target, { STRICT_ATTRIBUTES: 'on' });
    assert.deepEqual([await send(attributes), warned], ['out', []], target);
  }
});
