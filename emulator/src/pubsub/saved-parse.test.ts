import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { manualClock } from '../manual-clock.ts';
import { createRegistry } from './registry.ts';
import { preparePubsub, savePubsub } from './saved.ts';
import { newSubscription } from './subscription-config.ts';
import { newTopic } from './topic-config.ts';
import type { Subscription } from './wire.ts';

const TOPIC = 'projects/p/topics/orders';
const SUB = 'projects/p/subscriptions/work';
const SNAPSHOT = 'projects/p/snapshots/shot';
const NOW = Date.UTC(2030, 0, 1);
const registry = () => createRegistry({ clock: manualClock(NOW) });
const PLAIN = {
  name: SUB,
  topic: TOPIC,
  pushConfig: null,
  ackDeadlineSeconds: 0,
  messageRetentionDuration: null,
  labels: {},
  enableMessageOrdering: true,
  expirationPolicy: null,
  deadLetterPolicy: null,
  retryPolicy: null,
  filter: '',
  retainAckedMessages: false,
  detached: false,
  enableExactlyOnceDelivery: false,
} as const satisfies Subscription;

/** Any key, also those that mean something to JavaScript. */
const key = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('__proto__', 'constructor', 'toString'));
const published = fc.record({
  data: fc.uint8Array({ maxLength: 300 }).map((data) => Buffer.from(data)),
  attributes: fc.array(fc.tuple(key, fc.string({ unit: 'binary' }))).map((all) => Object.fromEntries(all)),
  orderingKey: fc.oneof(fc.constant(''), key),
});

test('messages of any content come back from JSON as they were, in their order', () => {
  fc.assert(
    fc.property(fc.array(published, { maxLength: 20 }), (messages) => {
      const first = registry();
      first.createTopic(newTopic({ name: TOPIC, labels: {}, messageRetentionDuration: null }));
      first.createSubscription(newSubscription(PLAIN, false));
      first.publish(
        TOPIC,
        messages.map((message) => ({ ...message, messageId: '', publishTime: null })),
      );
      const second = registry();
      const saved = JSON.parse(JSON.stringify(savePubsub(first))) as object;
      preparePubsub(second, saved)();
      const held = (all: typeof first) =>
        all
          .subscription(SUB)
          .delivery.unacked()
          .map(({ message, publishTimeMs, bytes }) => ({ message, publishTimeMs, bytes }));
      assert.deepEqual(held(second), held(first));
      assert.deepEqual({ ...savePubsub(second), nextMessageId: '' }, { ...saved, nextMessageId: '' });
    }),
  );
});

const topics = [{ name: TOPIC }];
const sub = (fields: object) => ({ topics, subscriptions: [{ name: SUB, topic: TOPIC, ...fields }] });
const messages = [{ messageId: '7', publishTime: '2030-01-01T00:00:00Z', data: 'eA==' }];
const shot = { name: SNAPSHOT, topic: TOPIC, expireTime: '2030-01-02T00:00:00Z' };

const REFUSED: readonly (readonly [saved: unknown, says: string])[] = [
  [undefined, 'pubsub is missing; accepted: an object'],
  [[], 'pubsub is []; accepted: an object'],
  [
    { topic: [] },
    'pubsub.topic is not known; accepted: topics, subscriptions, schemas, snapshots, messages, nextMessageId',
  ],
  [{ topics: {} }, 'pubsub.topics is {}; accepted: a list'],
  [{ topics: [{}] }, 'pubsub.topics[0].name is missing; accepted: a string'],
  [{ topics: [null] }, 'pubsub.topics[0] is null; accepted: an object'],
  [{ topics: [...topics, ...topics] }, `pubsub.topics[1].name is "${TOPIC}"; accepted: each one once`],
  [
    { topics: [{ name: 'orders\nx' }] },
    'pubsub.topics[0] is refused: Invalid resource name given (name=orders x). Refer to https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names for more information.',
  ],
  [
    { topics: [{ name: TOPIC, messageRetentionDuration: '1s' }] },
    'pubsub.topics[0] is refused: Invalid message_retention_duration (seconds): 1. It must be between 600 and 2678400.',
  ],
  [
    { topics: [{ name: TOPIC, kmsKeyName: 'k' }] },
    'pubsub.topics[0] is refused: Invalid kms_key_name: k. The expected format is projects/*/locations/*/keyRings/*/cryptoKeys/*.',
  ],
  [
    { topics: [{ name: TOPIC, tags: {} }] },
    'pubsub.topics[0].tags is not known; accepted: name, labels, messageRetentionDuration, schemaSettings, messageStoragePolicy, kmsKeyName, ingestionDataSourceSettings, retained, iamPolicy',
  ],
  [
    { topics: [{ name: TOPIC, ingestionDataSourceSettings: { awsMsk: { topic: 'a' } } }] },
    'pubsub.topics[0].ingestionDataSourceSettings.awsMsk.clusterArn is missing; accepted: a string',
  ],
  [{ topics: [{ name: TOPIC, labels: { a: 1 } }] }, 'pubsub.topics[0].labels.a is 1; accepted: a string'],
  [
    { topics: [{ name: TOPIC, retained: ['7'] }] },
    'pubsub.topics[0].retained[0] is "7"; accepted: the ID of one of pubsub.messages',
  ],
  [
    { topics: [{ name: TOPIC, retained: ['7', '7'] }], messages },
    'pubsub.topics[0].retained[1] is "7"; accepted: each one once',
  ],
  [
    sub({ ackDeadlineSeconds: 'x' }),
    'pubsub.subscriptions[0].ackDeadlineSeconds is "x"; accepted: a whole number from 0 to 9007199254740991',
  ],
  [
    sub({ ackDeadlineSeconds: 5 }),
    'pubsub.subscriptions[0] is refused: Invalid ack_deadline_seconds: 5. It must be between 10 and 600.',
  ],
  [
    sub({ filter: 'attributes' }),
    "pubsub.subscriptions[0] is refused: Invalid filter given (filter=attributes): '.' or ':' expected at character 11, found the end.",
  ],
  [
    sub({ retryPolicy: { minimumBackoff: '1m' } }),
    'pubsub.subscriptions[0].retryPolicy.minimumBackoff is "1m"; accepted: a duration in seconds as in 10s or 0.5s',
  ],
  [sub({ detached: 'yes' }), 'pubsub.subscriptions[0].detached is "yes"; accepted: true, false'],
  [
    sub({ topic: 'projects/p/topics/other' }),
    `pubsub.subscriptions[0].topic is "projects/p/topics/other"; accepted: the name of one of pubsub.topics, _deleted-topic_`,
  ],
  [
    sub({ pushConfig: { pushEndpoint: 'http://x', oidcToken: { serviceAccountEmail: 'a@b' } } }),
    'pubsub.subscriptions[0] is refused: push_config.oidc_token is not implemented by this server',
  ],
  [
    sub({ pushConfig: { pushEndpoint: 'http://x', pubsubWrapper: {}, noWrapper: {} } }),
    'pubsub.subscriptions[0].pushConfig has pubsubWrapper and noWrapper; accepted: one of them',
  ],
  [
    sub({ unacknowledged: [{ messageId: '7', failures: -1 }] }),
    'pubsub.subscriptions[0].unacknowledged[0].failures is -1; accepted: a whole number from 0 to 9007199254740991',
  ],
  [
    sub({ unacknowledged: [{ messageId: '8' }] }),
    'pubsub.subscriptions[0].unacknowledged[0].messageId is "8"; accepted: the ID of one of pubsub.messages',
  ],
  [
    { topics, messages, snapshots: [{ ...shot, messages: ['7'], expireTime: 'soon' }] },
    'pubsub.snapshots[0].expireTime is "soon"; accepted: a time as in 2030-01-31T23:59:59.123Z',
  ],
  [{ messages: [{ ...messages[0], data: 'é' }] }, 'pubsub.messages[0].data is "é"; accepted: base64'],
  [
    { messages: [{ ...messages[0], messageId: '07' }] },
    'pubsub.messages[0].messageId is "07"; accepted: a string of 1 to 19 digits',
  ],
  [{ messages: [...messages, ...messages] }, 'pubsub.messages[1].messageId is "7"; accepted: each one once'],
  [
    { messages: [{ ...messages[0], attributes: { 'a b': {} } }] },
    'pubsub.messages[0].attributes["a b"] is {}; accepted: a string',
  ],
  [{ nextMessageId: 5 }, 'pubsub.nextMessageId is 5; accepted: a string of 1 to 19 digits'],
];

for (const [saved, says] of REFUSED) {
  test(`refuses with one line that names the place, and changes nothing: ${says.slice(0, 60)}`, () => {
    const held = registry();
    preparePubsub(held, { ...sub({ unacknowledged: [{ messageId: '7', failures: 2 }] }), messages })();
    const before = savePubsub(held);
    const state = held.subscription(SUB);
    assert.throws(() => preparePubsub(held, saved), { name: 'SavedError', message: says });
    assert.deepEqual(savePubsub(held), before);
    assert.equal(held.subscription(SUB), state);
  });
}

test('what a person wrote by hand is enough: what is left out has its default', () => {
  const held = registry();
  preparePubsub(held, {
    ...sub({ unacknowledged: [{ messageId: '7' }] }),
    snapshots: [{ ...shot, messages: ['7'] }],
    messages: [...messages, { messageId: '99', publishTime: '2030-01-01T00:00:00Z' }],
  })();
  assert.deepEqual(
    held.subscription(SUB).config(),
    newSubscription({ ...PLAIN, enableMessageOrdering: false }, false),
  );
  assert.deepEqual(
    held.snapshots.messages(SNAPSHOT).map(({ message }) => message.data.toString()),
    ['x'],
  );
  assert.equal(held.topicSubscriptions(TOPIC).length, 1);
  const {
    messageIds: [id],
  } = held.publish(TOPIC, [
    { data: Buffer.from('y'), attributes: {}, messageId: '', publishTime: null, orderingKey: '' },
  ]);
  assert.ok(BigInt(id!) > 99n);
});

test('message IDs go on above those that were saved and those that are loaded', () => {
  const held = registry();
  const publish = () => {
    const content = {
      data: Buffer.from('y'),
      attributes: {},
      messageId: '',
      publishTime: null,
      orderingKey: '',
    };
    return held.publish(TOPIC, [content]).messageIds[0];
  };
  preparePubsub(held, { topics, nextMessageId: '8000000000000000000' })();
  assert.equal(publish(), '8000000000000000000');
  const top = { ...messages[0], messageId: '8000000000000000007' };
  preparePubsub(held, { ...sub({ unacknowledged: [{ messageId: top.messageId }] }), messages: [top] })();
  assert.equal(publish(), '8000000000000000008');
  preparePubsub(held, { topics })();
  assert.equal(publish(), '8000000000000000009', 'and never go back');
});
