import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Encodings, SchemaTypes, type Message, type PubSub, type Schema } from '@google-cloud/pubsub';
import { GoogleError } from 'google-gax';
import { createFaults } from '../../faults/index.ts';
import { manualClock } from '../../manual-clock.ts';
import { subscriptionName, testServer, topicName, type TestServer } from '../test-server.ts';

const AVRO = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}';
const AVRO_WITH_B =
  '{"type":"record","name":"R","fields":[{"name":"a","type":"string"},{"name":"b","type":"int","default":0}]}';
const PROTO = 'syntax = "proto3"; message R { string a = 1; }';
const schemaName = (id: string): string => `projects/test-project/schemas/${id}`;
const bytes = (text: string): Buffer => Buffer.from(text);

async function topicWith(pubsub: PubSub, schema: Schema, encoding: 'JSON' | 'BINARY', id = 'orders') {
  const schemaSettings = {
    schema: await schema.getName(),
    encoding: Encodings[encoding === 'JSON' ? 'Json' : 'Binary'],
  };
  const [topic] = await pubsub.createTopic({ name: topicName(id), schemaSettings });
  return topic;
}

const revisionsOf = async ({ call }: TestServer, id: string) =>
  (await call('ListSchemaRevisions', { name: schemaName(id), view: 'FULL' }))['schemas'] as readonly {
    revisionId: string;
    definition: string;
  }[];

test('the real client creates, gets, lists and deletes schemas', async (t) => {
  const { pubsub } = await testServer(t);
  const all = async (view: 'BASIC' | 'FULL'): Promise<(string | null | undefined)[]> => {
    const found: (string | null | undefined)[] = [];
    for await (const { definition } of pubsub.listSchemas(view)) found.push(definition);
    return found;
  };
  assert.deepEqual(await all('BASIC'), []);
  const schema = await pubsub.createSchema('avro', SchemaTypes.Avro, AVRO);
  await pubsub.createSchema('proto', SchemaTypes.ProtocolBuffer, PROTO);
  const got = await schema.get('FULL');
  assert.deepEqual([got.name, got.type, got.definition], [schemaName('avro'), 'AVRO', AVRO]);
  assert.match(String(got.revisionId), /^[0-9a-f]{8}$/);
  assert.equal((await schema.get('BASIC')).definition, '');
  assert.deepEqual(await all('BASIC'), ['', '']);
  assert.deepEqual(await all('FULL'), [AVRO, PROTO]);
  await assert.rejects(pubsub.createSchema('avro', SchemaTypes.Avro, AVRO), { code: 6 });
  await schema.delete();
  await assert.rejects(schema.get('FULL'), { code: 5 });
  assert.deepEqual(await all('FULL'), [PROTO]);
});

test('the real client validates schemas and messages', async (t) => {
  const { pubsub } = await testServer(t);
  await pubsub.validateSchema({ type: SchemaTypes.Avro, definition: AVRO });
  for (const [type, definition] of [
    [SchemaTypes.Avro, '{'],
    [SchemaTypes.ProtocolBuffer, 'message {'],
  ] as const) {
    await assert.rejects(pubsub.validateSchema({ type, definition }), {
      code: 3,
      details: /^Invalid schema definition: Could not parse schema\./,
    });
  }
  const schema = await pubsub.createSchema('avro', SchemaTypes.Avro, AVRO);
  const name = await schema.getName();
  const client = await pubsub.getSchemaClient();
  const parent = 'projects/test-project';
  await client.validateMessage({ parent, name, message: bytes('{"a":"x"}'), encoding: 'JSON' });
  await assert.rejects(
    client.validateMessage({ parent, name, message: bytes('{"a":1}'), encoding: 'JSON' }),
    { code: 3, details: 'Invalid data in message: Message failed schema validation.' },
  );
  const adHoc = { parent, schema: { type: 'PROTOCOL_BUFFER', definition: PROTO } as const };
  await client.validateMessage({ ...adHoc, message: Buffer.from([0x0a, 1, 0x78]), encoding: 'BINARY' });
  await assert.rejects(client.validateMessage({ ...adHoc, message: bytes('{"b":1}'), encoding: 'JSON' }), {
    code: 3,
  });
});

test('a published message says by which revision and in which encoding it was judged', async (t) => {
  const { pubsub } = await testServer(t);
  const schema = await pubsub.createSchema('avro', SchemaTypes.Avro, AVRO);
  const topic = await topicWith(pubsub, schema, 'JSON');
  const [subscription] = await topic.createSubscription('orders-sub');
  const came = new Promise<Message>((resolve) => subscription.once('message', resolve));
  await topic.publishMessage({ data: bytes('{"a":"x"}'), attributes: { mine: '1' } });
  const message = await came;
  message.ack();
  const { revisionId } = await schema.get('FULL');
  assert.deepEqual(message.attributes, {
    mine: '1',
    googclient_schemaencoding: 'JSON',
    googclient_schemaname: schemaName('avro'),
    googclient_schemarevisionid: revisionId,
  });
  await subscription.close();
});

test('one message that does not fit refuses the request, in the words and details of the service', async (t) => {
  const server = await testServer(t);
  const { pubsub, create, publish, pull } = server;
  const schema = await pubsub.createSchema('avro', SchemaTypes.Avro, AVRO);
  await topicWith(pubsub, schema, 'JSON');
  await create('orders', 'orders-sub');
  const [{ revisionId } = assert.fail()] = await revisionsOf(server, 'avro');
  const error = await publish('orders', { data: bytes('{"a":"x"}') }, { data: bytes('{"a":1}') }).then(
    () => assert.fail('it was published'),
    (thrown: GoogleError) => GoogleError.parseGRPCStatusDetails(thrown),
  );
  assert.equal(error.code, 3);
  assert.match(error.message, /Invalid data in message: Message failed schema validation\./);
  const { reason, domain, errorInfoMetadata } = error as GoogleError & { errorInfoMetadata?: unknown };
  assert.deepEqual(
    { reason, domain, errorInfoMetadata },
    {
      reason: 'INVALID_JSON_AVRO_MESSAGE',
      domain: 'pubsub.googleapis.com',
      errorInfoMetadata: {
        message: 'Message failed schema validation',
        revisionInfo: `Could not validate message with any schema revision for schema: ${schemaName('avro')}, last checked revision: revision_id=${revisionId} failed with status: JSON object with type number_integer does not match schema which expected string`,
      },
    },
  );
  assert.deepEqual(await pull('orders-sub'), [], 'nothing of the request is stored');
});

test('binary messages of Protocol Buffers are judged, and fields that the schema lacks are refused', async (t) => {
  const { pubsub, publish } = await testServer(t);
  await topicWith(pubsub, await pubsub.createSchema('proto', SchemaTypes.ProtocolBuffer, PROTO), 'BINARY');
  await publish('orders', { data: Buffer.from([0x0a, 1, 0x78]) });
  await assert.rejects(publish('orders', { data: Buffer.from([0x0a, 1, 0x78, 0x10, 1]) }), {
    code: 3,
    details: 'Invalid data in message: Message failed schema validation.',
  });
});

test('revisions are committed, listed, rolled back to and deleted', async (t) => {
  const server = await testServer(t, manualClock());
  const { call, pubsub } = server;
  await pubsub.createSchema('avro', SchemaTypes.Avro, AVRO);
  const name = schemaName('avro');
  const committed = await call('CommitSchema', { name, schema: { type: 'AVRO', definition: AVRO_WITH_B } });
  const [first, second] = await revisionsOf(server, 'avro');
  assert.deepEqual([first?.definition, second?.definition], [AVRO, AVRO_WITH_B]);
  assert.equal(committed['revisionId'], second?.revisionId);
  const back = await call('RollbackSchema', { name, revisionId: first?.revisionId });
  assert.equal(back['definition'], AVRO);
  assert.equal((await revisionsOf(server, 'avro')).length, 3);
  const page = await call('ListSchemaRevisions', { name, pageSize: 2 });
  const rest = await call('ListSchemaRevisions', { name, pageSize: 2, pageToken: page['nextPageToken'] });
  assert.deepEqual(
    [...(page['schemas'] as object[]), ...(rest['schemas'] as object[])].map(
      (each) => Reflect.get(each, 'revisionId') as unknown,
    ),
    [first?.revisionId, second?.revisionId, back['revisionId']],
  );
  const gone = `${name}@${second?.revisionId}`;
  assert.equal((await call('GetSchema', { name: gone }))['definition'], AVRO_WITH_B);
  assert.equal((await call('DeleteSchemaRevision', { name: gone }))['revisionId'], second?.revisionId);
  await assert.rejects(call('GetSchema', { name: gone }), { code: 5 });
  await assert.rejects(call('DeleteSchemaRevision', { name: gone }), { code: 5 });
  await assert.rejects(call('DeleteSchemaRevision', { name }), { code: 3 });
  await call('DeleteSchemaRevision', { name: `${name}@${first?.revisionId}` });
  const last = `${name}@${String(back['revisionId'])}`;
  await assert.rejects(call('DeleteSchemaRevision', { name: last }), { code: 3 });
});

test('a revision that cannot be read by the ones before is refused, and so is a 21st', async (t) => {
  const { call, pubsub } = await testServer(t);
  const { revisionId } = await (await pubsub.createSchema('avro', SchemaTypes.Avro, AVRO)).get('FULL');
  const commit = (type: string, definition: string) =>
    call('CommitSchema', { name: schemaName('avro'), schema: { type, definition } });
  await assert.rejects(commit('AVRO', AVRO.replace('"string"', '"int"')), {
    code: 3,
    details: new RegExp(`Revision is incompatible with previous revision: ${revisionId}\\.`),
  });
  await assert.rejects(commit('PROTOCOL_BUFFER', PROTO), { code: 3 });
  for (let count = 1; count < 20; count += 1) await commit('AVRO', AVRO);
  await assert.rejects(commit('AVRO', AVRO), { code: 8 });
});

test('a topic judges by its range of revisions, the latest first', async (t) => {
  const server = await testServer(t);
  const { call, pubsub, publish, create, pull } = server;
  await pubsub.createSchema('avro', SchemaTypes.Avro, AVRO);
  const schema = schemaName('avro');
  await call('CommitSchema', { name: schema, schema: { type: 'AVRO', definition: AVRO_WITH_B } });
  const [first = assert.fail(), second = assert.fail()] = await revisionsOf(server, 'avro');
  const name = topicName('orders');
  await call('CreateTopic', { name, schemaSettings: { schema, encoding: 'JSON' } });
  await create('orders', 'orders-sub');
  await publish('orders', { data: bytes('{"a":"x"}') });
  await publish('orders', { data: bytes('{"a":"x","b":1}') });
  const judged = (await pull('orders-sub')).map(
    ({ message }) => message.attributes['googclient_schemarevisionid'],
  );
  assert.deepEqual(judged, [first.revisionId, second.revisionId]);

  const paths = ['schema_settings.first_revision_id'];
  const schemaSettings = { firstRevisionId: second.revisionId };
  await call('UpdateTopic', { topic: { name, schemaSettings }, updateMask: { paths } });
  assert.deepEqual((await call('GetTopic', { topic: name }))['schemaSettings'], {
    schema,
    encoding: 'JSON',
    firstRevisionId: second.revisionId,
    lastRevisionId: '',
  });
  await assert.rejects(publish('orders', { data: bytes('{"a":"x"}') }), { code: 3 });
  await call('DeleteSchemaRevision', { name: `${schema}@${second.revisionId}` });
  await assert.rejects(publish('orders', { data: bytes('{"a":"x","b":1}') }), { code: 3 });
  await call('UpdateTopic', { topic: { name }, updateMask: { paths: ['schema_settings'] } });
  await publish('orders', { data: bytes('anything') });
});

test('a topic refuses settings that cannot be', async (t) => {
  const server = await testServer(t);
  const { call, pubsub } = server;
  await pubsub.createSchema('avro', SchemaTypes.Avro, AVRO);
  const schema = schemaName('avro');
  await call('CommitSchema', { name: schema, schema: { type: 'AVRO', definition: AVRO } });
  const [first, second] = await revisionsOf(server, 'avro');
  for (const [schemaSettings, code] of [
    [{ schema: schemaName('none'), encoding: 'JSON' }, 5],
    [{ schema: '', encoding: 'JSON' }, 3],
    [{ schema: 'avro', encoding: 'JSON' }, 3],
    [{ schema }, 3],
    [{ schema, encoding: 'JSON', firstRevisionId: 'deadbeef' }, 5],
    [{ schema, encoding: 'JSON', lastRevisionId: 'deadbeef' }, 5],
    [{ schema, encoding: 'JSON', firstRevisionId: second?.revisionId, lastRevisionId: first?.revisionId }, 3],
  ] as const) {
    await assert.rejects(call('CreateTopic', { name: topicName('orders'), schemaSettings }), { code });
  }
  await assert.rejects(call('GetTopic', { topic: topicName('orders') }), { code: 5 });
});

test('nothing is published to a topic whose schema was deleted', async (t) => {
  const { call, pubsub, publish } = await testServer(t);
  const schema = await pubsub.createSchema('avro', SchemaTypes.Avro, AVRO);
  await topicWith(pubsub, schema, 'JSON');
  await schema.delete();
  assert.deepEqual((await call('GetTopic', { topic: topicName('orders') }))['schemaSettings'], {
    schema: '_deleted-schema_',
    encoding: 'JSON',
    firstRevisionId: '',
    lastRevisionId: '',
  });
  await assert.rejects(publish('orders', { data: bytes('{"a":"x"}') }), { code: 5 });
});

test('schemas, their revisions and what topics say of them are saved and loaded', async (t) => {
  const first = await testServer(t);
  const { call, pubsub } = first;
  await pubsub.createSchema('avro', SchemaTypes.Avro, AVRO);
  const gone = await pubsub.createSchema('gone', SchemaTypes.ProtocolBuffer, PROTO);
  await call('CommitSchema', { name: schemaName('avro'), schema: { type: 'AVRO', definition: AVRO_WITH_B } });
  const revisions = await revisionsOf(first, 'avro');
  const schemaSettings = {
    schema: schemaName('avro'),
    encoding: 'JSON',
    lastRevisionId: revisions[0]?.revisionId,
  };
  await call('CreateTopic', { name: topicName('orders'), schemaSettings });
  await topicWith(pubsub, gone, 'BINARY', 'stuck');
  await gone.delete();

  const saved = JSON.parse(JSON.stringify(first.server.save())) as Record<string, unknown>;
  const second = await testServer(t);
  second.server.load(saved);
  assert.deepEqual(await revisionsOf(second, 'avro'), revisions);
  for (const id of ['orders', 'stuck']) {
    const topic = topicName(id);
    assert.deepEqual(await second.call('GetTopic', { topic }), await call('GetTopic', { topic }));
  }
  await assert.rejects(second.publish('orders', { data: bytes('{"a":1}') }), { code: 3 });
  await second.publish('orders', { data: bytes('{"a":"x"}') });

  const [schema] = saved['schemas'] as { revisions: object[] }[];
  const changed = (change: object) => ({ ...saved, ...change });
  for (const [state, place] of [
    [changed({ schemas: [] }), /pubsub\.topics\[0\]\.schemaSettings/],
    [changed({ schemas: [{ ...schema, revisions: [] }] }), /pubsub\.schemas\[0\]\.revisions/],
    [changed({ schemas: [{ ...schema, name: 'x' }] }), /pubsub\.schemas\[0\]\.name/],
    [changed({ schemas: [{ ...schema, revisions: schema?.revisions.toReversed() }] }), /revisionCreateTime/],
    [
      changed({ schemas: [{ ...schema, revisions: [{ ...schema?.revisions[0], definition: '{' }] }] }),
      /pubsub\.schemas\[0\]\.revisions\[0\] is refused/,
    ],
  ] as const) {
    assert.throws(() => second.server.load(state), place);
  }
  assert.deepEqual(await revisionsOf(second, 'avro'), revisions, 'a refused load changes nothing');
  second.server.load({});
  assert.deepEqual((await second.call('ListSchemas', { parent: 'projects/test-project' }))['schemas'], []);
});

test('a fault can be set on a method of schemas, by the name of the schema', async (t) => {
  const clock = manualClock();
  const faults = createFaults();
  const { call, pubsub } = await testServer(t, clock, undefined, faults);
  await pubsub.createSchema('avro', SchemaTypes.Avro, AVRO);
  await pubsub.createSchema('other', SchemaTypes.Avro, AVRO);
  const action = { type: 'fail', code: 'PERMISSION_DENIED' };
  faults.set({ rules: [{ service: 'pubsub', method: 'GetSchema', resource: '*/schemas/avro', action }] });
  await assert.rejects(call('GetSchema', { name: schemaName('avro') }), { code: 7 });
  await call('GetSchema', { name: schemaName('other') });
});

test('a dead letter is not judged by the schema of its topic, so that it never gets lost', async (t) => {
  const server = await testServer(t, manualClock());
  const { call, pubsub, create, publish, pull, nack } = server;
  await topicWith(pubsub, await pubsub.createSchema('avro', SchemaTypes.Avro, AVRO), 'JSON', 'dead');
  await create('dead', 'dead-sub');
  await create('orders', 'orders-sub', {
    deadLetterPolicy: { deadLetterTopic: topicName('dead'), maxDeliveryAttempts: 5 },
  });
  await publish('orders', { data: bytes('free text') });
  for (let attempt = 0; attempt < 5; attempt += 1) await nack('orders-sub', ...(await pull('orders-sub')));
  assert.equal((await pull('dead-sub')).length, 1);
  await call('GetSubscription', { subscription: subscriptionName('dead-sub') });
});
