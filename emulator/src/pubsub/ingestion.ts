/**
 * What a topic can be told to ingest: checked and given back as the service does it, and never carried out. There is no
 * cloud to read from, so a topic with a source says what the service says where it may not read: its state is
 * INGESTION_RESOURCE_ERROR, and that of the source a denied permission. A program never takes it for one that ingests.
 */
import { invalidArgument } from '../grpc-server.ts';
import {
  meaningful,
  optional,
  record,
  refused,
  text,
  time,
  writeTimestamp,
  type Read,
} from '../saved-json.ts';
import { snakeCase } from './refuse.ts';
import type { Ingestion, IngestionSource, Timestamp } from './wire.ts';

type Kind = Readonly<{
  title: string;
  /** Fields that hold a text, and must. */
  required: readonly string[];
  /** The state that says that the source may not be read. */
  denied: string;
}>;

const ACCOUNT = 'gcpServiceAccount';

const KINDS: Readonly<Record<IngestionSource, Kind>> = {
  awsKinesis: {
    title: 'AwsKinesis',
    required: ['streamArn', 'consumerArn', 'awsRoleArn', ACCOUNT],
    denied: 'KINESIS_PERMISSION_DENIED',
  },
  cloudStorage: { title: 'CloudStorage', required: ['bucket'], denied: 'CLOUD_STORAGE_PERMISSION_DENIED' },
  azureEventHubs: {
    title: 'AzureEventHubs',
    required: ['resourceGroup', 'namespace', 'eventHub', 'clientId', 'tenantId', 'subscriptionId', ACCOUNT],
    denied: 'EVENT_HUBS_PERMISSION_DENIED',
  },
  awsMsk: {
    title: 'AwsMsk',
    required: ['clusterArn', 'topic', 'awsRoleArn', ACCOUNT],
    denied: 'MSK_PERMISSION_DENIED',
  },
  confluentCloud: {
    title: 'ConfluentCloud',
    required: ['bootstrapServer', 'clusterId', 'topic', 'identityPoolId', ACCOUNT],
    denied: 'CONFLUENT_CLOUD_PERMISSION_DENIED',
  },
};
const SOURCES = Object.keys(KINDS) as readonly IngestionSource[];
const FORMATS = ['textFormat', 'avroFormat', 'pubsubAvroFormat'] as const;
const SEVERITIES = ['SEVERITY_UNSPECIFIED', 'DISABLED', 'DEBUG', 'INFO', 'WARNING', 'ERROR'];

/** Throws INVALID_ARGUMENT, in the words of Google's emulator, for settings that name no source or not all of it. */
export function ingestion(given: Ingestion | null): Ingestion | null {
  if (given === null) return null;
  const source = SOURCES.find((name) => given[name]);
  const fields = source && given[source];
  if (!source || !fields) throw invalidArgument('No ingestion source provided');
  const { title, required, denied } = KINDS[source];
  const missing = required.filter((field) => !fields[field]);
  if (missing.length > 0) {
    throw invalidArgument(
      `Missing required fields for ${title} ingestion settings: ${missing.map(snakeCase).join(', ')}`,
    );
  }
  const texts = Object.fromEntries(required.map((field) => [field, fields[field]]));
  const more = source === 'cloudStorage' ? cloudStorage(fields) : {};
  const { platformLogsSettings } = given;
  return {
    [source]: { state: denied, ...texts, ...more },
    ...(platformLogsSettings && { platformLogsSettings: { severity: platformLogsSettings.severity } }),
  };
}

type Given = Readonly<Record<string, unknown>>;

function cloudStorage(given: Given): object {
  const { bucket, matchGlob, minimumObjectCreateTime } = given;
  // "Without any prefix like gs://": google/pubsub/v1/pubsub.proto
  if (String(bucket).includes('/')) throw invalidArgument(`Invalid bucket name: ${String(bucket)}`);
  const format = FORMATS.find((name) => given[name]) ?? 'textFormat';
  return {
    [format]: format === 'textFormat' ? textFormat(given['textFormat']) : {},
    ...(matchGlob ? { matchGlob } : {}),
    ...(minimumObjectCreateTime ? { minimumObjectCreateTime } : {}),
  };
}

function textFormat(given: unknown): object {
  const { delimiter } = (given ?? {}) as Readonly<{ delimiter?: string }>;
  if (delimiter !== undefined && delimiter.length !== 1) {
    throw invalidArgument(
      `Delimiter for Cloud Storage ingestion text format must be a single character. Delimiter provided: ${delimiter}`,
    );
  }
  return { delimiter: delimiter ?? '\n' };
}

/** In Google's JSON form, without the states, which are those of every topic here. */
export function saveIngestion(settings: Ingestion | null | undefined): object | undefined {
  if (!settings) return undefined;
  const source = SOURCES.find((name) => settings[name]);
  const { state: _, minimumObjectCreateTime, ...fields } = (source && settings[source]) || {};
  return {
    ...(source && {
      [source]: {
        ...fields,
        ...(minimumObjectCreateTime
          ? { minimumObjectCreateTime: writeTimestamp(minimumObjectCreateTime as Timestamp) }
          : {}),
      },
    }),
    ...meaningful({ platformLogsSettings: settings.platformLogsSettings }),
  };
}

const severity: Read<string> = (value, place) => {
  if (typeof value === 'string' && SEVERITIES.includes(value)) return value;
  throw refused(place, value, SEVERITIES.join(', '));
};
const empty = optional(record({}), null);
const CLOUD_STORAGE = {
  textFormat: optional(record({ delimiter: text }), null),
  avroFormat: empty,
  pubsubAvroFormat: empty,
  matchGlob: optional(text, ''),
  minimumObjectCreateTime: optional(time, null),
};
const sourceShape = (source: IngestionSource) =>
  optional(
    record({
      ...Object.fromEntries(KINDS[source].required.map((field) => [field, text])),
      ...(source === 'cloudStorage' && CLOUD_STORAGE),
    }),
    null,
  );

/** As `saveIngestion` gives it. */
export const INGESTION = optional(
  record({
    ...Object.fromEntries(SOURCES.map((source) => [source, sourceShape(source)])),
    platformLogsSettings: optional(record({ severity }), null),
  }) as Read<Ingestion>,
  null,
);
