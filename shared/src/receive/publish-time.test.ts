import assert from 'node:assert/strict';
import test from 'node:test';
import type { Message as ClientMessage } from '@google-cloud/pubsub';
import { deadLettering } from '../dead-letter/dead-lettering.ts';
import { delay } from '../delay/delay.ts';
import { memoryTasks } from '../tasks/memory.ts';
import { decodeDelayed } from '../tasks/task-body.ts';
import { compose } from '../handler.ts';
import { silent } from '../log.ts';
import { forward } from '../publish/forward.ts';
import { publishing } from '../publish/publishing.ts';
import { decodeMessage, encodeMessage } from '../stored-message.ts';
import { memoryPublisher, virtualClock } from '../testing/index.ts';
import { httpEndpoint } from './http-endpoint.ts';
import { toMessage } from './pubsub-message.ts';
import { readPush } from './push.ts';

const NOW = Date.UTC(2030, 0, 1);
const DAY_MS = 86_400_000;
const SUBSCRIPTION = 'projects/p/subscriptions/s';
const TYPE = 'google.cloud.pubsub.topic.v1.messagePublished';
const EVENT = { 'ce-id': '42', 'ce-type': TYPE, 'ce-specversion': '1.0' };
const CLOUD_EVENT = { 'content-type': 'application/cloudevents+json' };
const iso = (ms: number): string => new Date(ms).toISOString();

const post = (body: unknown, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  rawBody: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
});
const wrapped = (publishTime: unknown, attributes = {}) => ({
  subscription: SUBSCRIPTION,
  message: { messageId: '42', data: 'aGk=', attributes, publishTime },
});
const pubsub = { '@type': 'type.googleapis.com/google.pubsub.v1.PubsubMessage', data: 'aGk=' };
const unwrapped = { 'x-goog-pubsub-message-id': '42', 'x-goog-pubsub-subscription-name': SUBSCRIPTION };

/** The same publish time through every endpoint. */
const endpoints: Readonly<Record<string, (time: string | undefined) => object>> = {
  push: (time) => post(wrapped(time)),
  'push, snake case': (time) => post({ message: { message_id: '42', publish_time: time } }),
  'push without wrapper': (time) =>
    post('hi', { ...unwrapped, ...(time !== undefined && { 'x-goog-pubsub-publish-time': time }) }),
  'binary CloudEvent': (time) =>
    post(wrapped(time), { ...EVENT, ...(time !== undefined && { 'ce-time': time }) }),
  'structured CloudEvent': (time) => post({ type: TYPE, time, data: wrapped(time) }, CLOUD_EVENT),
  'first-generation event': (time) => post({ context: { eventId: '42', timestamp: time }, data: pubsub }),
};
const NOT_SET = [undefined, '', '1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000Z', '0001-01-01T00:00:00Z'];

for (const [name, request] of Object.entries(endpoints)) {
  test(`${name}: a publish time that is absent, empty or a default is the time of arrival`, () => {
    for (const time of NOT_SET) {
      const { publishTime, assumedPublishTime } = readPush(request(time) as never, NOW);
      assert.deepEqual([publishTime.getTime(), assumedPublishTime], [NOW, 'not set'], String(time));
    }
  });

  test(`${name}: a publish time up to a day ahead is kept, one beyond counts as absent`, () => {
    const kept = readPush(request(iso(NOW + DAY_MS)) as never, NOW);
    assert.deepEqual([kept.publishTime.getTime(), kept.assumedPublishTime], [NOW + DAY_MS, undefined]);
    const beyond = readPush(request(iso(NOW + DAY_MS + 1)) as never, NOW);
    assert.deepEqual([beyond.publishTime.getTime(), beyond.assumedPublishTime], [NOW, 'too far ahead']);
  });
}

test('the time of an event stands in for the publish time of its message, where it is one', () => {
  const headers = { ...EVENT, 'ce-time': iso(NOW - 5_000) };
  const { publishTime, assumedPublishTime } = readPush(post(wrapped('1970-01-01T00:00:00Z'), headers), NOW);
  assert.deepEqual([publishTime.getTime(), assumedPublishTime], [NOW - 5_000, undefined]);
  const neither = readPush(post(wrapped(undefined), { ...EVENT, 'ce-time': '' }), NOW);
  assert.deepEqual([neither.publishTime.getTime(), neither.assumedPublishTime], [NOW, 'not set']);
});

test('pull: a publish time that the server did not send is the time of arrival', () => {
  const pulled = (time: string | null | undefined) => {
    // As the client makes its own kind of Date of what came.
    const finer = { getMicroseconds: () => 0, getNanoseconds: () => 0 };
    const publishTime = Object.assign(new Date(time as string), finer);
    const received = { id: '42', data: Buffer.from('hi'), attributes: {}, publishTime };
    return toMessage(received as unknown as ClientMessage, SUBSCRIPTION, NOW);
  };
  for (const time of [null, undefined]) {
    const { publishTime, assumedPublishTime } = pulled(time);
    assert.deepEqual([publishTime.getTime(), assumedPublishTime], [NOW, 'not set'], String(time));
  }
  const sent = pulled(iso(NOW - 1_000));
  assert.deepEqual([sent.publishTime.getTime(), sent.assumedPublishTime], [NOW - 1_000, undefined]);
});

test('what is no time at all is refused as before', () => {
  assert.throws(() => readPush(post(wrapped('yesterday')), NOW), { code: 'INVALID_BODY' });
});

function world() {
  const clock = virtualClock(NOW);
  const tasks = memoryTasks({ clock });
  const [target, dead] = [memoryPublisher(), memoryPublisher()];
  const warnings: (string | undefined)[] = [];
  const log = {
    ...silent,
    warn: (_: string, fields?: object) => void warnings.push((fields as { event?: string }).event),
  };
  const handler = compose(forward('projects/p/topics/out'), [
    deadLettering(dead, 'dead'),
    delay(tasks, { clock, topic: 'projects/p/topics/out' }),
    publishing(target),
  ]);
  const endpoint = httpEndpoint(handler, { consumer: 'c', clock, log, handlerTimeout: '10s' });
  return { clock, tasks, target, dead, warnings, endpoint };
}

test('a delay counts from the arrival where the publish time is the epoch, and the log says so', async () => {
  const { endpoint, tasks, warnings, target } = world();
  assert.equal((await endpoint(post(wrapped('1970-01-01T00:00:00Z', { delay: '3600' })))).status, 204);
  assert.equal(target.published.length, 0, 'delivered at once');
  assert.equal(tasks.created[0]?.scheduleTimeMs, NOW + 3_600_000);
  assert.deepEqual(warnings, ['publish_time_assumed']);
  const { attributes } = decodeDelayed(tasks.created[0]!.body).message;
  assert.equal(attributes['originPublishTime'], undefined);
});

test('a deliverAt 80 days ahead is scheduled where the publish time is the epoch', async () => {
  const { endpoint, tasks, dead } = world();
  await endpoint(post(wrapped('1970-01-01T00:00:00Z', { deliverAt: iso(NOW + 80 * DAY_MS) })));
  assert.deepEqual([dead.published.length, tasks.created.length], [0, 1]);
});

test('an assumed publish time is handed on by nothing, and stays assumed while the message is stored', async () => {
  const { endpoint, target } = world();
  const attributes = { originPublishTime: '1970-01-01T00:00:00Z' };
  await endpoint(post(wrapped('', attributes)));
  assert.equal(target.published[0]?.attributes['originPublishTime'], undefined);
  await endpoint(post(wrapped(iso(NOW - 1_000), attributes)));
  assert.equal(target.published[1]?.attributes['originPublishTime'], iso(NOW - 1_000));
  const message = readPush(post(wrapped(undefined)), NOW);
  assert.deepEqual(decodeMessage(encodeMessage(message)), message);
});

test('a dead letter does not name an assumed publish time', async () => {
  const { endpoint, dead } = world();
  await endpoint(post(wrapped('', { delay: 'soon' })));
  assert.equal(dead.published[0]?.attributes['originPublishTime'], undefined);
  assert.equal(dead.published[0]?.attributes['deadLetterReason'], 'INVALID_ATTRIBUTE');
});
