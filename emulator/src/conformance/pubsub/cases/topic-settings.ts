/** Settings of topics that concern Google's clouds: kept and given back. */
import { accepted, of, refused, type PubsubCase, same } from '../expect.ts';
import { PROTO } from '../sources.ts';
import type { Fields, PubsubWorld } from '../world.ts';

const make = of('Ingestion, storage and keys of topics');

const ACCOUNT = 'reader@p.iam.gserviceaccount.com';
const KINESIS = {
  streamArn: 'arn:aws:kinesis:us-west-2:111111111111:stream/orders',
  consumerArn: 'arn:aws:kinesis:us-west-2:111111111111:stream/orders/consumer/c:1',
  awsRoleArn: 'arn:aws:iam::111111111111:role/reader',
  gcpServiceAccount: ACCOUNT,
};
const SOURCES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  awsKinesis: KINESIS,
  azureEventHubs: {
    resourceGroup: 'group',
    namespace: 'space',
    eventHub: 'hub',
    clientId: 'client',
    tenantId: 'tenant',
    subscriptionId: 'subscription',
    gcpServiceAccount: ACCOUNT,
  },
  awsMsk: {
    clusterArn: 'arn:aws:kafka:us-east-1:111111111111:cluster/c/1',
    topic: 'orders',
    awsRoleArn: KINESIS.awsRoleArn,
    gcpServiceAccount: ACCOUNT,
  },
  confluentCloud: {
    bootstrapServer: 'server.example.com:9092',
    clusterId: 'cluster',
    topic: 'orders',
    identityPoolId: 'pool',
    gcpServiceAccount: ACCOUNT,
  },
};
const KEY = 'projects/p/locations/l/keyRings/r/cryptoKeys/k';

const create = (world: PubsubWorld, fields: Fields) =>
  world.call('CreateTopic', { name: world.topic('orders'), ...fields });
const update = (world: PubsubWorld, fields: Fields, path: string) =>
  world.call('UpdateTopic', {
    topic: { name: world.topic('orders'), ...fields },
    updateMask: { paths: [path] },
  });
const get = (world: PubsubWorld) => world.call('GetTopic', { topic: world.topic('orders') });
const ingesting = (source: Fields): Fields => ({ ingestionDataSourceSettings: source });
const sourceOf = async (world: PubsubWorld, name: string): Promise<Fields> =>
  ((await get(world))['ingestionDataSourceSettings'] as Record<string, Fields>)[name] ?? {};

/** The fields that were given, as the server shows them. */
async function shows(world: PubsubWorld, name: string, given: Fields): Promise<void> {
  const seen = await sourceOf(world, name);
  same(Object.fromEntries(Object.keys(given).map((field) => [field, seen[field]])), given);
}

const wrong = (title: string, fields: Fields): PubsubCase =>
  make(`${title} is INVALID_ARGUMENT, and no topic is made`, PROTO, async (world) => {
    await refused(create(world, fields), 'INVALID_ARGUMENT', 'CreateTopic');
    await refused(get(world), 'NOT_FOUND', 'GetTopic');
  });

export const topicSettings: readonly PubsubCase[] = [
  ...Object.entries(SOURCES).map(([source, fields]) =>
    make(`A topic keeps what it is to ingest from ${source}`, PROTO, async (world) => {
      await accepted(create(world, ingesting({ [source]: fields })), 'CreateTopic');
      await shows(world, source, fields);
    }),
  ),
  ...Object.entries(SOURCES).flatMap(([source, fields]) =>
    Object.keys(fields).map((field) =>
      wrong(`Ingestion from ${source} without ${field}`, ingesting({ [source]: { ...fields, [field]: '' } })),
    ),
  ),
  make('A topic keeps what it is to ingest from Cloud Storage', PROTO, async (world) => {
    const minimumObjectCreateTime = { seconds: '1700000000', nanos: 0 };
    const given = { bucket: 'bucket-of-mine', matchGlob: '**/*.txt', minimumObjectCreateTime };
    await accepted(create(world, ingesting({ cloudStorage: { ...given, avroFormat: {} } })), 'CreateTopic');
    await shows(world, 'cloudStorage', { ...given, avroFormat: {} });
  }),
  make('Cloud Storage is read as text with line ends unless told otherwise', PROTO, async (world) => {
    await create(world, ingesting({ cloudStorage: { bucket: 'bucket-of-mine' } }));
    const { textFormat } = await sourceOf(world, 'cloudStorage');
    same((textFormat as Fields | undefined)?.['delimiter'], '\n');
  }),
  make(
    'A topic that cannot read its source says so in its state and in that of the source',
    PROTO,
    async (world) => {
      await create(world, ingesting({ awsKinesis: KINESIS }));
      same((await get(world))['state'], 'INGESTION_RESOURCE_ERROR');
      same((await sourceOf(world, 'awsKinesis'))['state'], 'KINESIS_PERMISSION_DENIED');
    },
  ),
  make('A topic that is to ingest takes what is published to it', PROTO, async (world) => {
    await create(world, ingesting({ awsKinesis: KINESIS }));
    await world.create('orders', 'orders-sub');
    await world.publish('orders', 'a');
    same((await world.receive('orders-sub', 1)).length, 1);
  }),
  make('Ingestion keeps its settings of platform logs', PROTO, async (world) => {
    const platformLogsSettings = { severity: 'WARNING' };
    await create(world, ingesting({ awsKinesis: KINESIS, platformLogsSettings }));
    const settings = (await get(world))['ingestionDataSourceSettings'] as Fields;
    same(settings['platformLogsSettings'], platformLogsSettings);
  }),
  make('UpdateTopic changes what a topic is to ingest, and takes it away', PROTO, async (world) => {
    await create(world, {});
    await update(world, ingesting({ awsKinesis: KINESIS }), 'ingestion_data_source_settings');
    await shows(world, 'awsKinesis', KINESIS);
    await update(world, {}, 'ingestion_data_source_settings');
    const { ingestionDataSourceSettings, state } = await get(world);
    same([ingestionDataSourceSettings, state], [null, 'ACTIVE']);
  }),
  wrong('Ingestion without a source', ingesting({})),
  wrong('Ingestion from a bucket without a name', ingesting({ cloudStorage: { textFormat: {} } })),
  wrong('Ingestion from a bucket with a prefix', ingesting({ cloudStorage: { bucket: 'gs://mine' } })),
  wrong(
    'A delimiter of two characters',
    ingesting({ cloudStorage: { bucket: 'mine', textFormat: { delimiter: 'ab' } } }),
  ),
  make('A topic keeps where its messages may be stored', PROTO, async (world) => {
    const messageStoragePolicy = { allowedPersistenceRegions: ['europe-west1'], enforceInTransit: true };
    await accepted(create(world, { messageStoragePolicy }), 'CreateTopic');
    same((await get(world))['messageStoragePolicy'], messageStoragePolicy);
  }),
  make('UpdateTopic changes where messages may be stored', PROTO, async (world) => {
    await create(world, {});
    const messageStoragePolicy = { allowedPersistenceRegions: ['us-east1'], enforceInTransit: false };
    await accepted(update(world, { messageStoragePolicy }, 'message_storage_policy'), 'UpdateTopic');
    same((await get(world))['messageStoragePolicy'], messageStoragePolicy);
  }),
  wrong('A storage policy without regions', { messageStoragePolicy: { allowedPersistenceRegions: [] } }),
  wrong('A storage policy with what is no region', {
    messageStoragePolicy: { allowedPersistenceRegions: ['nowhere'] },
  }),
  make('A topic keeps the name of its key', PROTO, async (world) => {
    await accepted(create(world, { kmsKeyName: KEY }), 'CreateTopic');
    same((await get(world))['kmsKeyName'], KEY);
  }),
  wrong('The name of a key in another form', { kmsKeyName: 'my-key' }),
];
