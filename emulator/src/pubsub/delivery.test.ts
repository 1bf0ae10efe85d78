import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '../manual-clock.ts';
import { createBacklog, type Room } from './backlog.ts';
import { createDelivery } from './delivery.ts';
import type { Consumer, Lease } from './lease.ts';
import type { Subscription } from './wire.ts';

const ROOM: Room = { messages: 1, bytes: Infinity, oversize: true, oneOfAKey: false, turn: 1 };

test('goes on delivering after a consumer has thrown', () => {
  const clock = manualClock();
  const config = {
    pushConfig: null,
    deadLetterPolicy: null,
    retryPolicy: null,
    retainAckedMessages: false,
  } as unknown as Subscription;
  let ids = 0;
  const delivery = createDelivery(
    clock,
    () => config,
    () => createBacklog(false),
    () => String(++ids),
    () => false,
    () => Infinity,
  );
  const delivered: Lease[] = [];
  let throws = true;
  const consumer: Consumer = {
    kind: 'stream',
    ackDeadlineSeconds: () => 10,
    room: () => ROOM,
    deliver(leases) {
      if (throws) throw new Error('the connection has gone');
      delivered.push(...leases);
    },
    released() {},
  };
  const message = {
    data: Buffer.from('a'),
    attributes: {},
    messageId: '1',
    publishTime: null,
    orderingKey: '',
  };
  delivery.join(consumer);
  delivery.enqueue({ message, publishTimeMs: clock.now(), bytes: 1 });
  assert.throws(() => delivery.admit(), /the connection has gone/);
  throws = false;
  delivery.enqueue({ message, publishTimeMs: clock.now(), bytes: 1 });
  delivery.admit();
  assert.equal(delivered.length, 1);
  clock.advance(10_000);
  assert.equal(delivered.length, 3, 'the one that could not be handed over comes at its deadline');
});
