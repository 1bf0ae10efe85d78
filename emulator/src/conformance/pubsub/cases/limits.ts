/** The limits of what subscriptions and topics can be configured to: at the limit, and one beyond. */
import assert from 'node:assert/strict';
import { accepted, of, refused, type PubsubCase, same } from '../expect.ts';
import { DEAD_LETTERS, PROTO, PUSH } from '../sources.ts';
import type { Fields, PubsubWorld } from '../world.ts';

const make = of('Limits of configuration');
const seconds = (count: number) => ({ seconds: String(count), nanos: 0 });
const MINUTE = 60;
const DAY = 86_400;

const deadline = (ackDeadlineSeconds: number) => () => ({ ackDeadlineSeconds });
const retention = (count: number) => () => ({ messageRetentionDuration: seconds(count) });
/** It may not be below the retention, whose default is 7 days. */
const expiry = (count: number) => () => ({
  messageRetentionDuration: seconds(10 * MINUTE),
  expirationPolicy: { ttl: seconds(count) },
});
const minimum = (count: number) => () => ({
  retryPolicy: { minimumBackoff: seconds(count), maximumBackoff: seconds(600) },
});
const maximum = (count: number) => () => ({
  retryPolicy: { minimumBackoff: seconds(0), maximumBackoff: seconds(count) },
});
const attempts = (maxDeliveryAttempts: number) => (world: PubsubWorld) => ({
  deadLetterPolicy: { deadLetterTopic: world.topic('orders'), maxDeliveryAttempts },
});
const endpoint = (pushEndpoint: string) => () => ({ pushConfig: { pushEndpoint } });

type Options = (world: PubsubWorld) => Fields;

const ALLOWED: readonly (readonly [string, string, Options])[] = [
  ['An ack deadline of 10 s', PROTO, deadline(10)],
  ['An ack deadline of 600 s', PROTO, deadline(600)],
  ['A retention of 10 minutes', PROTO, retention(10 * MINUTE)],
  ['A retention of 31 days', PROTO, retention(31 * DAY)],
  ['An expiry after 1 day', PROTO, expiry(DAY)],
  ['An expiry after 365 days', PROTO, expiry(365 * DAY)],
  ['A minimum backoff of 0 s', PROTO, minimum(0)],
  ['A minimum backoff of 600 s', PROTO, minimum(600)],
  ['A maximum backoff of 600 s', PROTO, maximum(600)],
  ['5 delivery attempts', DEAD_LETTERS, attempts(5)],
  ['100 delivery attempts', DEAD_LETTERS, attempts(100)],
  ['A push endpoint with https', PUSH, endpoint('https://example.com/push')],
];

const REFUSED: readonly (readonly [string, string, Options])[] = [
  ['An ack deadline of 9 s', PROTO, deadline(9)],
  ['An ack deadline of 601 s', PROTO, deadline(601)],
  ['A negative ack deadline', PROTO, deadline(-1)],
  ['A retention of 599 s', PROTO, retention(10 * MINUTE - 1)],
  ['A retention of 31 days and 1 s', PROTO, retention(31 * DAY + 1)],
  ['An expiry after less than 1 day', PROTO, expiry(DAY - 1)],
  ['A minimum backoff of 601 s', PROTO, minimum(601)],
  ['A negative minimum backoff', PROTO, minimum(-1)],
  ['A maximum backoff of 601 s', PROTO, maximum(601)],
  ['A push endpoint that is no URL', PUSH, endpoint('here')],
  ['A push endpoint with ftp', PUSH, endpoint('ftp://example.com/push')],
];

const verb = (what: string): string => (what.endsWith('attempts') && !what.startsWith('A ') ? 'are' : 'is');

export const limits: readonly PubsubCase[] = [
  ...ALLOWED.map(([what, source, options]) =>
    make(`${what} ${verb(what)} accepted and kept`, source, async (world) => {
      await world.pubsub.createTopic('orders');
      const wanted = options(world);
      await accepted(world.create('orders', 'orders-sub', wanted), what);
      const found = await world.call('GetSubscription', { subscription: world.subscription('orders-sub') });
      for (const [field, value] of Object.entries(wanted)) assert.partialDeepStrictEqual(found[field], value);
    }),
  ),
  ...REFUSED.map(([what, source, options]) =>
    make(`${what} ${verb(what)} INVALID_ARGUMENT`, source, async (world) => {
      await world.pubsub.createTopic('orders');
      await refused(world.create('orders', 'orders-sub', options(world)), 'INVALID_ARGUMENT', what);
    }),
  ),
  ...[4, 101, -1].map((count) =>
    make(`${count} delivery attempts are refused`, DEAD_LETTERS, async (world) => {
      await world.pubsub.createTopic('orders');
      // No document says with which of the two statuses of a bad value.
      const answer = world.create('orders', 'orders-sub', attempts(count)(world));
      await refused(answer, ['INVALID_ARGUMENT', 'OUT_OF_RANGE'], `${count} attempts`);
    }),
  ),
  make('An expiration policy without a time means that it never expires', PROTO, async (world) => {
    await accepted(world.create('orders', 'orders-sub', { expirationPolicy: { ttl: null } }), 'it');
    const found = await world.call('GetSubscription', { subscription: world.subscription('orders-sub') });
    same(found['expirationPolicy'], { ttl: null });
  }),
  make('A retry policy defaults to 10 s and 600 s', PROTO, async (world) => {
    await world.create('orders', 'orders-sub', { retryPolicy: {} });
    const found = await world.call('GetSubscription', { subscription: world.subscription('orders-sub') });
    same(found['retryPolicy'], { minimumBackoff: seconds(10), maximumBackoff: seconds(600) });
  }),
  make('A dead-letter policy defaults to 5 attempts', PROTO, async (world) => {
    await world.pubsub.createTopic('orders');
    await world.create('orders', 'orders-sub', attempts(0)(world));
    const found = await world.call('GetSubscription', { subscription: world.subscription('orders-sub') });
    same((found['deadLetterPolicy'] as { maxDeliveryAttempts: number }).maxDeliveryAttempts, 5);
  }),
  make('A dead-letter topic that does not exist is NOT_FOUND', PROTO, (world) => {
    const deadLetterPolicy = { deadLetterTopic: world.topic('missing'), maxDeliveryAttempts: 5 };
    return refused(world.create('orders', 'orders-sub', { deadLetterPolicy }), 'NOT_FOUND', 'it');
  }),
  ...(
    [
      ['of 10 minutes is accepted', 600, true],
      ['of 31 days is accepted', 31 * DAY, true],
      ['of 599 s is INVALID_ARGUMENT', 599, false],
      ['of 31 days and 1 s is INVALID_ARGUMENT', 31 * DAY + 1, false],
    ] as const
  ).map(([what, count, allowed]) =>
    make(`A retention of a topic ${what}`, PROTO, async (world) => {
      const request = { name: world.topic('orders'), messageRetentionDuration: seconds(count) };
      const answer = world.call('CreateTopic', request);
      await (allowed ? accepted(answer, `${count} s`) : refused(answer, 'INVALID_ARGUMENT', `${count} s`));
    }),
  ),
];
