/**
 * Whose fault a failure is: a message is blamed for nothing but its own, however long the rest is away.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { translate } from './tasks/cloud-tasks-errors.ts';
import { unavailable } from './firestore/errors.ts';
import {
  codeOf,
  ConfigError,
  countsAsAttempt,
  faultOf,
  PermanentError,
  storeUnavailable,
  TransientError,
} from './errors.ts';
import { statusOf } from './faults.ts';
import { contextFor } from './context.ts';
import { compose } from './handler.ts';
import { orderedDelivery } from './order/in-order.ts';
import { memoryStreams } from './order/memory.ts';
import type { OutgoingMessage } from './message.ts';
import { forward } from './publish/forward.ts';
import { publishError } from './publish/pubsub-errors.ts';
import { publishing } from './publish/publishing.ts';
import { virtualClock } from './testing/index.ts';

const answered = (code: unknown): Error => Object.assign(new Error('answered'), { code });
const STATUSES = Array.from({ length: 17 }, (_, status) => status);

test('of all status codes only those about the content are the message’s, at every service', () => {
  const blamed = (translated: (error: unknown) => Error): string[] =>
    STATUSES.filter((status) => faultOf(translated(answered(status))) === 'message').map(
      (status) => `${status} ${codeOf(translated(answered(status)))}`,
    );
  assert.deepEqual(
    blamed((error) => publishError(error, 't')),
    ['3 PUBLISH_REFUSED', '11 PUBLISH_REFUSED'],
  );
  assert.deepEqual(
    blamed((error) => translate(error, 'q')),
    ['3 TASK_REFUSED', '11 TASK_REFUSED'],
  );
  assert.deepEqual(blamed(unavailable), []);
});

test('a missing topic is transient as a missing queue is, and both are the deployment’s', () => {
  for (const error of [publishError(answered(5), 't'), translate(answered(5), 'q')]) {
    assert.ok(error instanceof TransientError, codeOf(error));
    assert.deepEqual([faultOf(error), countsAsAttempt(error)], ['deployment', false]);
  }
});

test('an answer over HTTP means what the same answer over gRPC means', () => {
  const pairs = [
    [400, 3],
    [401, 16],
    [403, 7],
    [404, 5],
    [429, 8],
    [501, 12],
    [503, 14],
    [504, 4],
  ];
  for (const [http, grpc] of pairs) {
    assert.equal(statusOf(answered(http)), grpc);
    assert.equal(statusOf({ response: { status: http } }), grpc);
    assert.equal(statusOf(answered(String(http))), grpc);
  }
  assert.deepEqual([statusOf(answered('ENOTFOUND')), statusOf(answered('ECONNREFUSED'))], [14, 14]);
  assert.deepEqual([statusOf(new Error('x')), statusOf(undefined), statusOf('text')], [NaN, NaN, NaN]);
});

test('a failure is the one of what caused it, and what nothing is known of is the message’s', () => {
  const denied = publishError(answered(7), 't');
  const wrapped = new TransientError('DEAD_LETTER_UNPUBLISHED', 'x', { cause: denied });
  assert.equal(faultOf(wrapped), 'deployment');
  const refused = new TransientError('DEAD_LETTER_UNPUBLISHED', 'x', {
    cause: new PermanentError('BAD', 'x'),
  });
  assert.equal(faultOf(refused), 'message');
  assert.equal(faultOf(storeUnavailable('x')), 'store');
  assert.equal(faultOf(new ConfigError('PUBLISHER_MISSING', 'x')), 'deployment');
  // What a handler throws as it came from a client that it called.
  assert.deepEqual(
    [14, 7, 503, 'ECONNREFUSED', 3, 5, 4].map((code) => faultOf(answered(code))),
    ['target', 'deployment', 'target', 'target', 'message', 'message', 'message'],
  );
  for (const own of [new Error('x'), new TransientError('MINE', 'x'), 'text', undefined]) {
    assert.deepEqual([faultOf(own), countsAsAttempt(own)], ['message', true]);
  }
});

for (const [what, status] of [
  ['unavailable', 14],
  ['denied', 7],
  ['missing', 5],
] as const) {
  test(`twenty streams whose target is ${what} for ten minutes: an hour later none is blocked, all are out`, async () => {
    const clock = virtualClock();
    const streams = orderedDelivery(memoryStreams({ clock }), { clock });
    let isAway = true;
    const out: OutgoingMessage[] = [];
    const publisher = {
      async publish(message: OutgoingMessage): Promise<string> {
        if (isAway) throw publishError(answered(status), message.topic);
        return String(out.push(message));
      },
    };
    const inner = compose(forward('t'), [publishing(publisher)]);
    const handle = compose(inner, [streams.middleware]);
    const sweep = streams.sweep(inner);
    const context = () => contextFor(clock, { consumer: 'c', source: 's' });
    const keys = Array.from({ length: 20 }, (_, stream) => `k${stream}`);
    for (const number of [1, 2]) {
      for (const sequenceKey of keys) {
        const attributes = { sequence: String(number), sequenceKey };
        const message = { id: `${sequenceKey}/${number}`, data: Buffer.from('x'), attributes };
        await clock.until(handle({ ...message, publishTime: new Date(clock.now()) }, context()));
      }
    }
    for (let minute = 0; minute < 70; minute += 1) {
      await clock.advance(60_000);
      isAway = minute < 10;
      await clock.until(sweep(context()));
    }
    const blocked = await streams.list('c', { state: 'blocked' });
    assert.deepEqual([blocked.streams.length, out.length], [0, 40]);
  });
}
