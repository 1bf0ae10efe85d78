/**
 * What `fifo` does by configuration where the order of messages says nothing: two sources of one key, and numbers that
 * are done and come with content that is not remembered.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Message, type OutgoingMessage, silent } from 'pubsub-guarantees';
import { deliver, settle } from 'pubsub-guarantees/receive';
import { memoryStreams } from 'pubsub-guarantees/testing';
import { virtualClock } from 'pubsub-guarantees/testing';
import { readConfig } from './config.ts';
import { pipeline } from './pipelines.ts';

const BASE = { GOOGLE_CLOUD_PROJECT: 'p', TARGET_TOPIC: 'out', DEAD_LETTER_TOPIC: 'dead-letters' };

function fifo(environment: Readonly<Record<string, string>>) {
  const clock = virtualClock();
  const published: OutgoingMessage[] = [];
  const config = readConfig({ ...BASE, ...environment }, 'fifo');
  const { handler } = pipeline(config, {
    clock,
    log: silent,
    publisher: {
      async publish(message) {
        published.push(message);
        return '1';
      },
    },
    claims: undefined,
    tasks: undefined,
    streams: memoryStreams({ clock }),
    ledger: undefined,
    payloads: undefined,
    subscriptionWindows: async () => undefined,
    evictionPolicy: Promise.resolve(undefined),
  });
  /** Numbers 1 to `count`, one after the other. All of them are acknowledged. */
  const send = async (count: number, text: string, subscription = 'one'): Promise<void> => {
    for (let number = 1; number <= count; number += 1) {
      const message: Message = {
        id: `${subscription} ${text} ${number}`,
        data: Buffer.from(`${text} ${number}`),
        attributes: { sequenceKey: 'k', sequence: String(number) },
        publishTime: new Date(clock.now()),
        subscription: `projects/p/subscriptions/${subscription}`,
      };
      const source = config.source === undefined ? {} : { source: config.source };
      const options = { consumer: 'c', clock, log: silent, handlerTimeout: '60s', ...source } as const;
      assert.equal(settle(await clock.until(deliver(handler, message, options))), 'ack');
    }
  };
  /** How many messages were published for each reason, or without one. */
  const counts = (): Readonly<Record<string, number>> => {
    const found: Record<string, number> = {};
    for (const { attributes } of published) {
      const reason = attributes['deadLetterReason'] ?? 'forwarded';
      found[reason] = (found[reason] ?? 0) + 1;
    }
    return found;
  };
  return { send, counts };
}

test('one key through two subscriptions is two streams: every message of both is forwarded', async () => {
  const { send, counts } = fifo({});
  await send(40, 'first', 'one');
  await send(40, 'second', 'two');
  assert.deepEqual(counts(), { forwarded: 80 });
});

test('ORDER_SCOPE=consumer makes them one stream, in which a second content of a number is a conflict', async () => {
  const { send, counts } = fifo({ ORDER_SCOPE: 'consumer' });
  await send(40, 'first', 'one');
  await send(40, 'second', 'two');
  assert.deepEqual(counts(), { forwarded: 40, SEQUENCE_CONFLICT: 40 });
});

test('SOURCE_SUBSCRIPTION names the source, whatever subscription a message comes through', async () => {
  const { send, counts } = fifo({ SOURCE_SUBSCRIPTION: 'both' });
  await send(40, 'same', 'one');
  await send(40, 'same', 'two');
  assert.deepEqual(counts(), { forwarded: 40 });
});

test('numbering that begins again is never acknowledged silently: a message that cannot be compared is a dead letter', async () => {
  const { send, counts } = fifo({});
  await send(150, 'first');
  await send(150, 'second');
  assert.deepEqual(counts(), { forwarded: 150, SEQUENCE_STALE_UNKNOWN: 50, SEQUENCE_CONFLICT: 100 });
});

test('ORDER_ON_UNKNOWN_STALE=ack is for a replay: what cannot be compared is acknowledged', async () => {
  const { send, counts } = fifo({ ORDER_ON_UNKNOWN_STALE: 'ack' });
  await send(150, 'same');
  await send(150, 'same');
  assert.deepEqual(counts(), { forwarded: 150 });
});
