/** What the fields of StreamingPull requests may be, in the first and in later ones. */
import assert from 'node:assert/strict';
import { of, type PubsubCase } from '../expect.ts';
import { PROTO } from '../sources.ts';
import { endsWith, open, opened, SUB, type Request } from '../streams.ts';

const make = of('StreamingPull, fields');

const FIRST: readonly (readonly [string, Request])[] = [
  ['A first request without a deadline', { streamAckDeadlineSeconds: 0 }],
  ['A stream deadline of 9 s', { streamAckDeadlineSeconds: 9 }],
  ['A stream deadline of 601 s', { streamAckDeadlineSeconds: 601 }],
];

const NEXT: readonly (readonly [string, Request])[] = [
  ['A second subscription', { subscription: 'projects/p/subscriptions/other' }],
  ['max_outstanding_messages after the first request', { maxOutstandingMessages: '5' }],
  ['max_outstanding_bytes after the first request', { maxOutstandingBytes: '5' }],
  ['protocol_version after the first request', { protocolVersion: '1' }],
  ['A malformed ack ID', { ackIds: ['what?'] }],
  [
    'Lists of deadlines and IDs that differ in length',
    { modifyDeadlineAckIds: ['x'], modifyDeadlineSeconds: [] },
  ],
  ['A stream deadline of 9 s in a later request', { streamAckDeadlineSeconds: 9 }],
];

export const streamFields: readonly PubsubCase[] = [
  ...FIRST.map(([what, request]) =>
    make(`${what} is INVALID_ARGUMENT`, PROTO, async (world) => {
      await world.create('orders', SUB);
      await endsWith(open(world, request), 'INVALID_ARGUMENT', what);
    }),
  ),
  ...NEXT.map(([what, request]) =>
    make(`${what} is INVALID_ARGUMENT`, PROTO, async (world) => {
      const stream = await opened(world);
      stream.send(request);
      await endsWith(stream, 'INVALID_ARGUMENT', what);
    }),
  ),
  make('A negative deadline on the stream is INVALID_ARGUMENT', PROTO, async (world) => {
    const stream = await opened(world);
    const [{ ackId } = assert.fail()] = stream.received();
    stream.send({ modifyDeadlineAckIds: [ackId], modifyDeadlineSeconds: [-1] });
    await endsWith(stream, 'INVALID_ARGUMENT', 'a deadline of -1 s');
  }),
];
