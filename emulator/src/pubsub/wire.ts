/**
 * The messages of google.pubsub.v1 as the loaded protos show them: camel case, 64-bit numbers as strings,
 * unset messages as null. Only what this server reads or writes is spelled out.
 */

export type Timestamp = Readonly<{ seconds: string; nanos: number }>;
export type Duration = Readonly<{ seconds: string; nanos: number }>;
type Labels = Readonly<Record<string, string>>;

export type StoragePolicy = Readonly<{
  allowedPersistenceRegions: readonly string[];
  enforceInTransit?: boolean;
}>;

export type IngestionSource = 'awsKinesis' | 'cloudStorage' | 'azureEventHubs' | 'awsMsk' | 'confluentCloud';

/** google.pubsub.v1.IngestionDataSourceSettings: one source. */
export type Ingestion = Readonly<Partial<Record<IngestionSource, Readonly<Record<string, unknown>> | null>>> &
  Readonly<{ platformLogsSettings?: Readonly<{ severity: string }> | null }>;

export type SchemaSettings = Readonly<{
  schema: string;
  encoding: string;
  firstRevisionId: string;
  lastRevisionId: string;
}>;

export type PubsubMessage = Readonly<{
  data: Buffer;
  attributes: Readonly<Record<string, string>>;
  messageId: string;
  publishTime: Timestamp | null;
  orderingKey: string;
}>;

export type Topic = Readonly<{
  name: string;
  labels: Labels;
  messageRetentionDuration: Duration | null;
  schemaSettings?: SchemaSettings | null;
  messageStoragePolicy?: StoragePolicy | null;
  kmsKeyName?: string;
  ingestionDataSourceSettings?: Ingestion | null;
  state?: string;
}>;

export type Snapshot = Readonly<{ name: string; topic: string; expireTime: Timestamp; labels: Labels }>;

export type PushConfig = Readonly<{
  pushEndpoint: string;
  attributes: Readonly<Record<string, string>>;
  oidcToken?: Readonly<{ serviceAccountEmail: string; audience: string }> | null;
  pubsubWrapper?: object | null;
  noWrapper?: Readonly<{ writeMetadata: boolean }> | null;
}>;

export type DeadLetterPolicy = Readonly<{ deadLetterTopic: string; maxDeliveryAttempts: number }>;
export type RetryPolicy = Readonly<{ minimumBackoff: Duration | null; maximumBackoff: Duration | null }>;

export type Subscription = Readonly<{
  name: string;
  topic: string;
  pushConfig: PushConfig | null;
  ackDeadlineSeconds: number;
  messageRetentionDuration: Duration | null;
  labels: Labels;
  enableMessageOrdering: boolean;
  expirationPolicy: Readonly<{ ttl: Duration | null }> | null;
  deadLetterPolicy: DeadLetterPolicy | null;
  retryPolicy: RetryPolicy | null;
  filter: string;
  retainAckedMessages: boolean;
  detached: boolean;
  enableExactlyOnceDelivery: boolean;
  state?: string;
  /** Only in answers. */
  topicMessageRetentionDuration?: Duration | null;
}>;

export type FieldMask = Readonly<{ paths: readonly string[] }>;
export type Paging = Readonly<{ pageSize: number; pageToken: string }>;

export type ReceivedMessage = Readonly<{ ackId: string; message: PubsubMessage; deliveryAttempt: number }>;

export type StreamingPullRequest = Readonly<{
  subscription: string;
  ackIds: readonly string[];
  modifyDeadlineSeconds: readonly number[];
  modifyDeadlineAckIds: readonly string[];
  streamAckDeadlineSeconds: number;
  maxOutstandingMessages: string;
  maxOutstandingBytes: string;
  protocolVersion: string;
}>;

/** Of what came on a stream, sent on exactly-once subscriptions only. */
export type Confirmation = Readonly<{ ackIds: readonly string[]; invalidAckIds: readonly string[] }>;

export type StreamingPullResponse = Readonly<{
  receivedMessages?: readonly ReceivedMessage[];
  acknowledgeConfirmation?: Confirmation;
  modifyAckDeadlineConfirmation?: Confirmation;
  subscriptionProperties?: Readonly<{
    exactlyOnceDeliveryEnabled: boolean;
    messageOrderingEnabled: boolean;
  }>;
}>;

export const durationMs = (duration: Duration): number =>
  Number(duration.seconds) * 1000 + duration.nanos / 1_000_000;

export const seconds = (count: number): Duration => ({ seconds: String(count), nanos: 0 });

/** Of zero or more, to the whole millisecond. */
export const milliseconds = (count: number): Duration => timestamp(Math.floor(count));

export const timestamp = (milliseconds: number): Timestamp => ({
  seconds: String(Math.floor(milliseconds / 1000)),
  nanos: (milliseconds - Math.floor(milliseconds / 1000) * 1000) * 1_000_000,
});

export const timestampMs = ({ seconds, nanos }: Timestamp): number =>
  Number(seconds) * 1000 + nanos / 1_000_000;
