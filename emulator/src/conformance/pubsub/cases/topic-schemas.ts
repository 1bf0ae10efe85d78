/** Topics with schemas: settings, and what becomes of what is published. */
import { accepted, of, refused, type PubsubCase, same } from '../expect.ts';
import {
  attributesOf,
  AVRO,
  AVRO_WITH_DEFAULT,
  commit,
  createSchema,
  PROTO3,
  revisions,
  schemaName,
  topicWith,
} from '../schema-world.ts';
import { CODES, PROTO, RECORDED_REFUSAL, TOPIC_SCHEMA } from '../sources.ts';
import type { Fields, PubsubWorld } from '../world.ts';

const make = of('Topics with schemas');

const settingsOf = async (world: PubsubWorld): Promise<unknown> =>
  (await world.call('GetTopic', { topic: world.topic('orders') }))['schemaSettings'];

const update = (world: PubsubWorld, schemaSettings: Fields | null, path: string) =>
  world.call('UpdateTopic', {
    topic: { name: world.topic('orders'), schemaSettings },
    updateMask: { paths: [path] },
  });

/** Two revisions: the second has a field more. */
async function twoRevisions(world: PubsubWorld): Promise<readonly [first: string, second: string]> {
  const first = String((await createSchema(world, 'AVRO', AVRO))['revisionId']);
  return [first, String((await commit(world, 'AVRO', AVRO_WITH_DEFAULT))['revisionId'])];
}

export const topicSchemas: readonly PubsubCase[] = [
  make('CreateTopic keeps the schema settings, and GetTopic shows them', PROTO, async (world) => {
    await createSchema(world, 'AVRO', AVRO);
    const [revision] = await revisions(world);
    await topicWith(world, { encoding: 'JSON', firstRevisionId: revision });
    const wanted = { encoding: 'JSON', firstRevisionId: revision, lastRevisionId: '' };
    same(await settingsOf(world), { schema: schemaName(world), ...wanted });
  }),
  make('A topic with a schema that does not exist is NOT_FOUND, and is not made', CODES, async (world) => {
    await refused(topicWith(world, { encoding: 'JSON' }), 'NOT_FOUND', 'CreateTopic');
    await refused(world.call('GetTopic', { topic: world.topic('orders') }), 'NOT_FOUND', 'GetTopic');
  }),
  make('A topic with a revision that does not exist is NOT_FOUND', CODES, async (world) => {
    await createSchema(world, 'AVRO', AVRO);
    await refused(
      topicWith(world, { encoding: 'JSON', firstRevisionId: 'deadbeef' }),
      'NOT_FOUND',
      'CreateTopic',
    );
  }),
  make('A topic with a schema and no encoding is INVALID_ARGUMENT', PROTO, async (world) => {
    await createSchema(world, 'AVRO', AVRO);
    await refused(topicWith(world, {}), 'INVALID_ARGUMENT', 'CreateTopic');
  }),
  make('A first revision behind the last one is INVALID_ARGUMENT', PROTO, async (world) => {
    const [firstId, secondId] = await twoRevisions(world);
    await refused(
      topicWith(world, { encoding: 'JSON', firstRevisionId: secondId, lastRevisionId: firstId }),
      'INVALID_ARGUMENT',
      'CreateTopic',
    );
  }),
  make(
    'A message that fits is delivered with the schema, the revision and the encoding',
    TOPIC_SCHEMA,
    async (world) => {
      await createSchema(world, 'AVRO', AVRO);
      await topicWith(world, { encoding: 'JSON' });
      await world.publish('orders', { data: Buffer.from('{"a":"x"}'), attributes: { mine: '1' } });
      const [revision] = await revisions(world);
      same(await attributesOf(world), {
        mine: '1',
        googclient_schemaencoding: 'JSON',
        googclient_schemaname: schemaName(world),
        googclient_schemarevisionid: revision,
      });
    },
  ),
  make(
    'A message that does not fit is INVALID_ARGUMENT, and nothing of its request is stored',
    TOPIC_SCHEMA,
    async (world) => {
      await createSchema(world, 'AVRO', AVRO);
      await topicWith(world, { encoding: 'JSON' });
      await refused(world.publish('orders', '{"a":"x"}', '{"b":1}'), 'INVALID_ARGUMENT', 'Publish');
      same(await world.pull('orders-sub'), []);
    },
  ),
  make(
    'The refusal says "Invalid data in message: Message failed schema validation."',
    RECORDED_REFUSAL,
    async (world) => {
      await createSchema(world, 'AVRO', AVRO);
      await topicWith(world, { encoding: 'JSON' });
      const details = await world.publish('orders', '{"a":1}').then(
        () => 'OK',
        (error: Error & { details?: string }) => error.details,
      );
      same(details, 'Invalid data in message: Message failed schema validation.');
    },
  ),
  make('A message without data does not fit an Avro schema', TOPIC_SCHEMA, async (world) => {
    await createSchema(world, 'AVRO', AVRO);
    await topicWith(world, { encoding: 'JSON' });
    await refused(world.publish('orders', { attributes: { a: 'x' } }), 'INVALID_ARGUMENT', 'Publish');
  }),
  make('A binary message of Protocol Buffers is judged', TOPIC_SCHEMA, async (world) => {
    await createSchema(world, 'PROTOCOL_BUFFER', PROTO3);
    await topicWith(world, { encoding: 'BINARY' });
    await accepted(world.publish('orders', '\x0a\x01x'), 'what fits');
    await refused(world.publish('orders', '{"a":"x"}'), 'INVALID_ARGUMENT', 'Publish');
  }),
  make('Without a range every revision counts, the latest first', TOPIC_SCHEMA, async (world) => {
    const [firstId, secondId] = await twoRevisions(world);
    await topicWith(world, { encoding: 'JSON' });
    await world.publish('orders', '{"a":"x"}');
    same((await attributesOf(world))['googclient_schemarevisionid'], firstId, 'of the older form');
    await world.publish('orders', '{"a":"x","b":1}');
    same((await attributesOf(world))['googclient_schemarevisionid'], secondId, 'of the newer form');
  }),
  make('What fits a revision outside of the range is refused', TOPIC_SCHEMA, async (world) => {
    const [firstId, secondId] = await twoRevisions(world);
    await topicWith(world, { encoding: 'JSON', firstRevisionId: secondId, lastRevisionId: secondId });
    await refused(world.publish('orders', '{"a":"x"}'), 'INVALID_ARGUMENT', 'Publish');
    await update(world, { firstRevisionId: firstId }, 'schema_settings.first_revision_id');
    await accepted(world.publish('orders', '{"a":"x"}'), 'what is in the range now');
  }),
  make('UpdateTopic gives a topic another schema, and takes it away', PROTO, async (world) => {
    await createSchema(world, 'AVRO', AVRO);
    await world.create('orders', 'orders-sub');
    await update(world, { schema: schemaName(world), encoding: 'JSON' }, 'schema_settings');
    await refused(world.publish('orders', 'free'), 'INVALID_ARGUMENT', 'Publish');
    await update(world, null, 'schema_settings');
    same(await settingsOf(world), null);
    await accepted(world.publish('orders', 'free'), 'Publish without a schema');
  }),
  make(
    'After DeleteSchema a topic names its schema _deleted-schema_, and Publish fails',
    PROTO,
    async (world) => {
      await createSchema(world, 'AVRO', AVRO);
      await topicWith(world, { encoding: 'JSON' });
      await world.call('DeleteSchema', { name: schemaName(world) });
      same(((await settingsOf(world)) as { schema: string }).schema, '_deleted-schema_');
      await refused(
        world.publish('orders', '{"a":"x"}'),
        ['NOT_FOUND', 'INVALID_ARGUMENT', 'FAILED_PRECONDITION'],
        'Publish',
      );
    },
  ),
];
