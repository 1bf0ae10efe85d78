import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { credentials } from '@grpc/grpc-js';
import { CloudTasksClient } from '@google-cloud/tasks';
import { type Stack, startStack } from '../stack/stack.ts';
import { parseSeed } from './seed-file.ts';
import { seedFrom } from './seed.ts';

// Otherwise Google's clients first look for a metadata server.
process.env['METADATA_SERVER_DETECTION'] = 'none';

const YAML = `
project: shop
topics:
  orders:
    labels: { team: a }
    messageRetentionDuration: 600s
    subscriptions:
      billing:
        ackDeadlineSeconds: 60
        filter: attributes.kind = "sale"
        enableMessageOrdering: true
        retryPolicy: { minimumBackoff: 1s, maximumBackoff: 1.5s }
        deadLetterPolicy: { deadLetterTopic: dead-letters, maxDeliveryAttempts: 7 }
      audit:
        enableExactlyOnceDelivery: true
        retainAckedMessages: true
        expirationPeriod: never
  dead-letters:
  projects/other/topics/events:
subscriptions:
  - name: pushed
    topic: projects/other/topics/events
    expirationPeriod: 45d
    pushConfig:
      pushEndpoint: http://127.0.0.1:1/
      noWrapper: { writeMetadata: true }
      oidcToken: { serviceAccountEmail: a@b.example, audience: us }
queues:
  - emails
  - slow:
      rateLimits: { maxDispatchesPerSecond: 0.5, maxConcurrentDispatches: 2 }
      retryConfig: { maxAttempts: 3, minBackoff: 0.2s }
firestore:
  documents:
    users/alice: { name: Alice, age: 7, score: 1.5, tags: [a, null, true], at: { timestampValue: 2030-01-31T08:00:00Z } }
  ttl: { sessions: expireAt }
  triggers: { users: http://127.0.0.1:1/created }
`;

const lines: string[] = [];
let stack: Stack;
before(async () => {
  stack = await startStack({ seed: parseSeed(YAML, 'seed.yaml'), log: (line) => lines.push(line) });
});
after(() => stack?.close());

test('topics and subscriptions are there with every option, by short and by full names', async (t) => {
  assert.equal(stack.addresses.project, 'shop');
  const client = new PubSub({ projectId: 'shop', apiEndpoint: stack.addresses.pubsub, emulatorMode: true });
  t.after(() => client.close());
  const [topic] = await client.topic('orders').getMetadata();
  assert.deepEqual([topic.labels, topic.messageRetentionDuration?.seconds], [{ team: 'a' }, '600']);
  const [billing] = await client.subscription('billing').getMetadata();
  assert.deepEqual(
    [billing.topic, billing.ackDeadlineSeconds, billing.filter, billing.enableMessageOrdering],
    ['projects/shop/topics/orders', 60, 'attributes.kind = "sale"', true],
  );
  assert.deepEqual(billing.deadLetterPolicy, {
    deadLetterTopic: 'projects/shop/topics/dead-letters',
    maxDeliveryAttempts: 7,
  });
  assert.deepEqual(billing.retryPolicy?.maximumBackoff, { seconds: '1', nanos: 500_000_000 });
  const [audit] = await client.subscription('audit').getMetadata();
  assert.deepEqual([audit.enableExactlyOnceDelivery, audit.retainAckedMessages], [true, true]);
  const ttls = [billing, audit].map(({ expirationPolicy }) => expirationPolicy?.ttl?.seconds);
  assert.deepEqual(ttls, [String(31 * 86_400), undefined]);
  assert.ok(audit.expirationPolicy);
  const [pushed] = await client.subscription('pushed').getMetadata();
  assert.equal(pushed.topic, 'projects/other/topics/events');
  assert.equal(pushed.pushConfig?.noWrapper?.writeMetadata, true);
  assert.equal(pushed.pushConfig?.oidcToken?.audience, 'us');
  assert.equal(pushed.expirationPolicy?.ttl?.seconds, String(45 * 86_400));
});

test('triggers are there, and nothing that a seed creates fires them', async () => {
  const seed = parseSeed(YAML, 'seed.yaml');
  assert.deepEqual(seed.triggers, [{ collection: 'users', url: 'http://127.0.0.1:1/created' }]);
  // Its endpoint answers nothing: an event would be tried again.
  assert.deepEqual(lines, []);
});

test('queues are there with their limits', async (t) => {
  const [host = '', port] = stack.addresses.tasks.split(':');
  const client = new CloudTasksClient({
    apiEndpoint: host,
    port: Number(port),
    sslCreds: credentials.createInsecure(),
    projectId: 'shop',
  });
  t.after(() => client.close());
  const [queues] = await client.listQueues({ parent: 'projects/shop/locations/us-central1' });
  assert.deepEqual(
    queues.map(({ name, rateLimits, retryConfig }) => [
      name?.split('/').at(-1),
      rateLimits?.maxDispatchesPerSecond,
      retryConfig?.maxAttempts,
    ]),
    [
      ['emails', 500, 100],
      ['slow', 0.5, 3],
    ],
  );
});

test('documents are there, and expire by the policies of the seed', async (t) => {
  const [host, port] = stack.addresses.firestore.split(':');
  const firestore = new Firestore({
    projectId: 'shop',
    host: `${host}:${port}`,
    ssl: false,
    sslCreds: credentials.createInsecure(),
    customHeaders: { Authorization: 'Bearer owner' },
  } as object);
  t.after(() => firestore.terminate());
  const alice = (await firestore.doc('users/alice').get()).data() ?? {};
  assert.equal(alice['at'].toDate().toISOString(), '2030-01-31T08:00:00.000Z');
  delete alice['at'];
  assert.deepEqual(alice, { name: 'Alice', age: 7, score: 1.5, tags: ['a', null, true] });
  await firestore.doc('sessions/one').set({ expireAt: new Date(stack.clock.now() + 60_000) });
  await stack.clock.advance(2 * 3_600_000);
  assert.equal((await firestore.doc('sessions/one').get()).exists, false);
});

const REFUSED: readonly (readonly [text: string, says: RegExp])[] = [
  ['topics: [a\nqueues: [b]', /^seed\.yaml:\d: /],
  ['topics: [a]\ntopics: [b]', /^seed\.yaml:2: Map keys must be unique$/],
  ['- a', /^seed\.yaml: \["a"\] is no object$/],
  ['topics: [a]\nbogus: 1', /^seed\.yaml:2: bogus: unknown; accepted: project, location, topics, /],
  [
    'firestore:\n  triggers: { users/alice: http://127.0.0.1:1/ }',
    /^seed\.yaml:2: firestore\.triggers\.users\/alice: triggers: "users\/alice" is a document/,
  ],
  ['firestore:\n  triggers: { users: 5 }', /^seed\.yaml:2: firestore\.triggers\.users: 5 is no text$/],
  ['topics: 5', /^seed\.yaml:1: topics: 5 is neither a list nor an object/],
  ['topics:\n  - 5', /^seed\.yaml:2: topics\.0: 5 has no name/],
  ['topics:\n  a: 5', /^seed\.yaml:2: topics\.a: 5 is no object$/],
  [
    'topics:\n  a: { bogus: 1 }',
    /^seed\.yaml:2: topics\.a: Invalid JSON payload received\. Unknown name "bogus"/,
  ],
  [
    'topics:\n  a:\n    subscriptions:\n      b: { ackDeadlineSeconds: soon }',
    /^seed\.yaml:4: topics\.a\.subscriptions\.b: Invalid value at 'ack_deadline_seconds', "soon"$/,
  ],
  ['subscriptions: [b]', /^seed\.yaml:1: subscriptions\.0: topic is missing/],
  ['topics:\n  a:\n    subscriptions:\n      - { name: b, topic: c }', /^seed\.yaml:4: .*: topic is set in/],
  [
    'subscriptions:\n  - { name: b, topic: c, expirationPeriod: soon }',
    /^seed\.yaml:2: subscriptions\.0\.expirationPeriod: "soon" is no period; accepted: never, or a whole number/,
  ],
  [
    'subscriptions:\n  - { name: b, topic: c, expirationPeriod: 5 }',
    /^seed\.yaml:2: .*expirationPeriod: 5 is no period/,
  ],
  [
    'subscriptions:\n  - { name: b, topic: c, expirationPeriod: 2d, expirationPolicy: {} }',
    /^seed\.yaml:2: subscriptions\.0: expirationPeriod and expirationPolicy are both set/,
  ],
  ['project: [a]', /^seed\.yaml:1: project: \["a"\] is no text$/],
  [
    'firestore: { docs: {} }',
    /^seed\.yaml:1: firestore\.docs: unknown; accepted: documents, ttl, triggers, indexes, fieldOverrides$/,
  ],
  [
    'firestore: { documents: { a/b: { t: { timestampValue: soon } } } }',
    /^seed\.yaml:1: firestore\.documents\.a\/b\.t: "soon" is no timestampValue$/,
  ],
  ['firestore:\n  indexes: [{ fields: 5 }]', /^seed\.yaml:2: firestore\.indexes: firestore\.indexes\[0\]/],
  ['firestore: { ttl: { a: 5 } }', /^seed\.yaml:1: firestore\.ttl\.a: 5 is no text$/],
];

for (const [text, says] of REFUSED) {
  test(`refuses ${JSON.stringify(text)} with one line that names the place`, () => {
    assert.throws(
      () => parseSeed(text, 'seed.yaml'),
      (error: Error) => {
        assert.match(error.message, says);
        assert.equal(error.message.includes('\n'), false);
        return true;
      },
    );
  });
}

const REFUSED_BY_SERVER: readonly (readonly [text: string, says: RegExp])[] = [
  ['topics:\n  goog-a:', /^s\.yaml:2: topics\.goog-a: .*goog/],
  ['topics: [abc, abc]', /^s\.yaml:1: topics\.1: /],
  ['subscriptions:\n  - name: abc\n    topic: none', /^s\.yaml:2: subscriptions\.0: .*none/],
  [
    'topics:\n  abc:\n    subscriptions:\n      def: { ackDeadlineSeconds: 5 }',
    /^s\.yaml:4: topics\.abc\..*ack_deadline/,
  ],
  [
    'topics:\n  abc:\n    subscriptions: { efg: { expirationPeriod: 3d } }',
    /^s\.yaml:3: topics\.abc\.subscriptions\.efg: .*expiration_policy\.ttl.*message_retention_duration, 604800/,
  ],
  ['queues:\n  "a b":', /^s\.yaml:2: queues\.a b: /],
  ['firestore:\n  documents:\n    a: {}', /^s\.yaml:3: firestore\.documents\.a: /],
];

for (const [text, says] of REFUSED_BY_SERVER) {
  test(`reports what the server says to ${JSON.stringify(text)}, with the place`, async () => {
    const started = startStack({ seed: parseSeed(text, 's.yaml') });
    await assert.rejects(started, (error: Error) => {
      assert.match(error.message, says);
      return true;
    });
  });
}

test('a seed for a service that is not started is refused', async () => {
  const started = startStack({ services: ['pubsub'], seed: seedFrom({ queues: ['a'] }) });
  await assert.rejects(started, /^SeedError: seed: queues\.0: Cloud Tasks is not among the services/);
});
