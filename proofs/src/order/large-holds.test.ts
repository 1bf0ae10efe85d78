/**
 * Many large messages that wait for their turn at once, on the local stack's Firestore: a request may have 10 MiB
 * (https://firebase.google.com/docs/firestore/quotas).
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { systemClock } from '../../../shared/src/clock.ts';
import { compose } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { onLocalStack } from '../servers/firestore-servers.ts';
import { firestoreStreams } from '../../../shared/src/order/firestore.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import { kindOf, messageOf } from './bench.ts';

test('messages ahead of their turn are held where together they exceed one request', async () => {
  const { firestore, close } = await onLocalStack('off');
  try {
    const clock = systemClock();
    const ran: string[] = [];
    const streams = orderedDelivery(firestoreStreams(firestore));
    const chain = compose(
      async (message) => {
        ran.push(message.attributes.sequence ?? '');
        return ack();
      },
      [streams.middleware],
    );
    const context = {
      consumer: randomUUID(),
      source: 's',
      now: clock.now,
      deadline: clock.monotonic() + 60_000,
      signal: new AbortController().signal,
      log: silent,
    };
    const content = Buffer.alloc(1_000_000, 'x');
    const numbers = Array.from({ length: 14 }, (_, index) => index + 2);
    const outcomes = await Promise.all(
      numbers.map((number) => chain(messageOf(number, { content }), context)),
    );
    assert.deepEqual(
      outcomes.map(kindOf),
      numbers.map(() => 'ack held'),
    );
    assert.equal(kindOf(await chain(messageOf(1), context)), 'ack handled');
    assert.deepEqual(ran, ['1', ...numbers.map(String)]);
  } finally {
    await close();
  }
});
