/** Triggers as an endpoint sees them, on a clock that stands: form, retries, and what faults do to them. */
import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { FieldValue, Firestore, Timestamp } from '@google-cloud/firestore';
import protobuf from 'protobufjs';
import { createFaults } from '../faults/index.ts';
import { manualClock } from '../manual-clock.ts';
import { until } from '../until.ts';
import { startFirestore } from './index.ts';
import { checkTriggers, type Trigger } from './triggers.ts';

process.env['METADATA_SERVER_DETECTION'] = 'none';

type Received = Readonly<{ headers: IncomingHttpHeaders; body: Buffer }>;

/** `answers`: of the first requests; after them 204. */
async function setUp(
  t: TestContext,
  { answers = [], rules = [] }: { answers?: number[]; rules?: readonly object[] } = {},
) {
  const received: Received[] = [];
  const endpoint = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({ headers: request.headers, body: Buffer.concat(chunks) });
      response.writeHead(answers.shift() ?? 204).end();
    });
  });
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/created`;
  const triggers: readonly Trigger[] = [
    { collection: 'orders', url },
    { collection: 'shops/s1/orders', url, database: 'second' },
  ];
  const clock = manualClock();
  const faults = createFaults();
  faults.set({ rules: rules.map((rule) => ({ service: 'firestore', method: 'trigger', ...rule })) });
  const lines: string[] = [];
  const server = await startFirestore({
    clock,
    indexes: { mode: 'off' },
    faults,
    triggers: () => triggers,
    log: (line) => lines.push(line),
  });
  const clients: Firestore[] = [];
  const clientOf = (databaseId = '(default)'): Firestore => {
    const options = { projectId: 'p', databaseId, host: '127.0.0.1', port: server.port, ssl: false };
    const client = new Firestore(options);
    clients.push(client);
    return client;
  };
  t.after(async () => {
    await Promise.all(clients.map((client) => client.terminate()));
    await server.close();
    endpoint.close();
    endpoint.closeAllConnections();
  });
  const answered = (): Promise<unknown> => until(() => server.inFlight() === 0);
  const subjects = (): string[] => received.map(({ headers }) => String(headers['ce-subject'])).toSorted();
  const ids = (): string[] => received.map(({ headers }) => String(headers['ce-id']));
  return { db: clientOf(), clientOf, clock, faults, server, received, lines, answered, subjects, ids };
}

/** The numbers of Google's data.proto, written down apart from what the server encodes with. */
const EVENT_DATA = protobuf
  .parse(
    `syntax = "proto3";
    message DocumentEventData { Document value = 1; Document old_value = 2; Mask update_mask = 3; }
    message Mask { repeated string field_paths = 1; }
    message Document { string name = 1; map<string, Value> fields = 2; Time create_time = 3; Time update_time = 4; }
    message Time { int64 seconds = 1; int32 nanos = 2; }
    message Place { double latitude = 1; double longitude = 2; }
    message Value { oneof value_type {
      int32 null_value = 11; bool boolean_value = 1; int64 integer_value = 2; double double_value = 3;
      Time timestamp_value = 10; string string_value = 17; bytes bytes_value = 18; string reference_value = 5;
      Place geo_point_value = 8; List array_value = 9; Map map_value = 6; } }
    message List { repeated Value values = 1; }
    message Map { map<string, Value> fields = 1; }`,
  )
  .root.lookupType('DocumentEventData');

type Decoded = Readonly<{
  value: Readonly<{ name: string; fields: unknown; createTime: unknown; updateTime: unknown }>;
}>;
const decoded = ({ body }: Received): Decoded =>
  EVENT_DATA.toObject(EVENT_DATA.decode(body), { longs: String, bytes: String, oneofs: false }) as Decoded;

test('a document that is created leaves as a CloudEvent with the document in protobuf', async (t) => {
  const { db, received, answered } = await setUp(t);
  const written = await db.doc('orders/o1').set({
    text: 'ü',
    whole: 2 ** 40,
    part: 1.5,
    no: null,
    yes: true,
    bytes: Buffer.from([0, 255]),
    time: new Timestamp(1_000, 5_000),
    list: ['a', { deep: 1 }],
    reference: db.doc('orders/o0'),
    at: FieldValue.serverTimestamp(),
  });
  await answered();
  const [event] = received;
  assert.ok(event !== undefined && received.length === 1);
  const { headers } = event;
  const own = Object.entries(headers).filter(([name]) => name.startsWith('ce-') || name === 'content-type');
  const { 'ce-id': id, 'ce-time': time, ...rest } = Object.fromEntries(own);
  assert.match(String(id), /^[0-9a-f-]{36}$/);
  assert.equal(Date.parse(String(time)), written.writeTime.toMillis());
  assert.deepEqual(rest, {
    'ce-specversion': '1.0',
    'ce-type': 'google.cloud.firestore.document.v1.created',
    'ce-source': '//firestore.googleapis.com/projects/p/databases/(default)',
    'ce-subject': 'documents/orders/o1',
    'ce-dataschema':
      'https://github.com/googleapis/google-cloudevents/blob/main/proto/google/events/cloud/firestore/v1/data.proto',
    'ce-project': 'p',
    'ce-location': 'us-central1',
    'ce-database': '(default)',
    'ce-namespace': '(default)',
    'ce-document': 'orders/o1',
    'content-type': 'application/protobuf',
  });
  const { value, ...others } = decoded(event);
  assert.deepEqual(others, {});
  assert.equal(value.name, 'projects/p/databases/(default)/documents/orders/o1');
  const created = { seconds: String(written.writeTime.seconds), nanos: written.writeTime.nanoseconds };
  assert.deepEqual([value.createTime, value.updateTime], [created, created]);
  assert.deepEqual(value.fields, {
    text: { stringValue: 'ü' },
    whole: { integerValue: String(2 ** 40) },
    part: { doubleValue: 1.5 },
    no: { nullValue: 0 },
    yes: { booleanValue: true },
    bytes: { bytesValue: 'AP8=' },
    time: { timestampValue: { seconds: '1000', nanos: 5_000 } },
    list: {
      arrayValue: {
        values: [{ stringValue: 'a' }, { mapValue: { fields: { deep: { integerValue: '1' } } } }],
      },
    },
    reference: { referenceValue: 'projects/p/databases/(default)/documents/orders/o0' },
    at: { timestampValue: created },
  });
});

test('what a header may not hold is percent-encoded there, and is itself in the body', async (t) => {
  const { db, received, answered } = await setUp(t);
  await db.doc('orders/Łódź 100%').set({});
  await answered();
  const [event] = received;
  assert.equal(event?.headers['ce-document'], 'orders/%C5%81%C3%B3d%C5%BA%20100%25');
  assert.equal(
    event && decoded(event).value.name,
    'projects/p/databases/(default)/documents/orders/Łódź 100%',
  );
});

test('each commit that creates a document of the collection fires, and no other', async (t) => {
  const { db, clientOf, subjects, answered } = await setUp(t);
  await db.doc('orders/a').set({ n: 1 });
  await db.doc('orders/a').update({ n: 2 });
  await db.doc('orders/a/lines/l').set({});
  await db.doc('others/a').set({});
  await db.doc('shops/s1/orders/a').set({});
  await db.doc('orders/a').delete();
  await db.doc('orders/a').create({ n: 3 });
  const gone = db.runTransaction(async (transaction) => {
    transaction.create(db.doc('orders/b'), {});
    throw new Error('given up');
  });
  await assert.rejects(gone, /given up/);
  await assert.rejects(db.doc('orders/a').create({}));
  const batch = db.batch();
  batch.create(db.doc('orders/c'), {});
  batch.create(db.doc('orders/d'), {});
  await batch.commit();
  const second = clientOf('second');
  await second.doc('orders/e').set({});
  await second.doc('shops/s1/orders/f').set({});
  await answered();
  assert.deepEqual(subjects(), [
    'documents/orders/a',
    'documents/orders/a',
    'documents/orders/c',
    'documents/orders/d',
    'documents/shops/s1/orders/f',
  ]);
});

test('an event that fails is sent again, the same one, with pauses that double', async (t) => {
  const { db, clock, received, ids, lines, answered, server } = await setUp(t, { answers: [500, 404, 302] });
  await db.doc('orders/a').set({});
  for (const pauseMs of [10_000, 20_000, 40_000]) {
    await answered();
    const before = received.length;
    clock.advance(pauseMs - 1);
    await answered();
    assert.equal(received.length, before);
    clock.advance(1);
  }
  await answered();
  assert.deepEqual([received.length, new Set(ids()).size, server.inFlight()], [4, 1, 0]);
  const [first, ...others] = received;
  for (const { body } of others) assert.deepEqual(body, first?.body);
  assert.match(
    lines[0] ?? '',
    /the event of documents\/orders\/a for http.* status 500; it is sent again in 10 s$/,
  );
  clock.advance(86_400_000);
  await answered();
  assert.equal(received.length, 4);
});

test('an event that fails for a day is given up', async (t) => {
  const { db, clock, received, lines, answered } = await setUp(t, {
    answers: Array.from({ length: 1_000 }, () => 503),
  });
  await db.doc('orders/a').set({});
  for (let pause = 0; pause < 400 && !/given up/.test(lines.at(-1) ?? ''); pause += 1) {
    await answered();
    clock.advance(600_000);
  }
  await answered();
  assert.match(lines.at(-1) ?? '', /status 503; it is given up after a day$/);
  const count = received.length;
  assert.ok(count > 140 && count < 160, `${count}`);
  clock.advance(86_400_000);
  await answered();
  assert.equal(received.length, count);
});

test('documents of a state that is loaded fire nothing, and what was not delivered before is dropped', async (t) => {
  const { db, clock, server, received, answered } = await setUp(t, { answers: [500] });
  await db.doc('orders/a').set({});
  await answered();
  const saved = server.save();
  server.load(saved);
  clock.advance(3_600_000);
  await answered();
  assert.equal(received.length, 1);
  await db.doc('orders/b').set({});
  await answered();
  assert.equal(received.length, 2);
});

test('faults lose an event, send it twice, or lose its answer; all are recorded', async (t) => {
  const resource = 'projects/p/databases/(default)/documents/orders';
  const { db, clock, faults, subjects, ids, answered } = await setUp(t, {
    rules: [
      { nth: 1, action: { type: 'lose' } },
      { nth: 2, action: { type: 'duplicate' } },
      { nth: 3, action: { type: 'lose-reply' } },
      { nth: 4, action: { type: 'fail', status: 503 } },
    ],
  });
  await db.doc('orders/lost').set({});
  await answered();
  await db.doc('orders/twice').set({});
  await answered();
  await db.doc('orders/unheard').set({});
  await answered();
  assert.deepEqual(subjects(), [
    'documents/orders/twice',
    'documents/orders/twice',
    'documents/orders/unheard',
  ]);
  assert.equal(new Set(ids()).size, 2);
  // The fourth call is the second attempt of the one whose answer was lost.
  clock.advance(10_000);
  await answered();
  assert.equal(subjects().length, 3);
  clock.advance(20_000);
  await answered();
  assert.deepEqual(subjects().slice(2), ['documents/orders/unheard', 'documents/orders/unheard']);
  assert.deepEqual(
    faults.log().map(({ method, action, n }) => [method, action, n]),
    [
      ['trigger', 'lose', 1],
      ['trigger', 'duplicate', 2],
      ['trigger', 'lose-reply', 3],
      ['trigger', 'fail', 4],
    ],
  );
  assert.ok(faults.log().every((record) => record.resource === resource));
  const rpc = { service: 'firestore', method: 'Commit', action: { type: 'lose' } };
  assert.throws(() => faults.set({ rules: [rpc] }), /type is "lose"; accepted: with Commit of firestore/);
});

test('a trigger that cannot be is refused with what is accepted', () => {
  const url = 'http://127.0.0.1:3000/';
  const wrong: readonly (readonly [Trigger, RegExp])[] = [
    [{ collection: 'orders/o1', url }, /^triggers: "orders\/o1" is a document; accepted: the path of a coll/],
    [{ collection: '', url }, /empty segment/],
    [{ collection: 'orders', url: 'here' }, /^triggers: "here" of orders is no URL; accepted: http/],
    [{ collection: 'orders', url: 'ftp://127.0.0.1/' }, /is no URL/],
  ];
  for (const [trigger, message] of wrong) assert.throws(() => checkTriggers([trigger]), { message });
});
