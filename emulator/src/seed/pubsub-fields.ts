/** The fields of google.pubsub.v1 that a topic and a subscription can be made of, as the server takes or refuses them. */
import type { Fields } from '../proto-json.ts';

export const TOPIC: Fields = {
  name: 'string',
  labels: 'map',
  messageRetentionDuration: 'duration',
  kmsKeyName: 'string',
  messageStoragePolicy: { fields: { allowedPersistenceRegions: 'strings', enforceInTransit: 'bool' } },
  schemaSettings: {
    fields: {
      schema: 'string',
      encoding: { values: ['ENCODING_UNSPECIFIED', 'JSON', 'BINARY'] },
      firstRevisionId: 'string',
      lastRevisionId: 'string',
    },
  },
};

export const SUBSCRIPTION: Fields = {
  name: 'string',
  topic: 'string',
  pushConfig: {
    fields: {
      pushEndpoint: 'string',
      attributes: 'map',
      oidcToken: { fields: { serviceAccountEmail: 'string', audience: 'string' } },
      pubsubWrapper: { fields: {} },
      noWrapper: { fields: { writeMetadata: 'bool' } },
    },
  },
  ackDeadlineSeconds: 'int32',
  retainAckedMessages: 'bool',
  messageRetentionDuration: 'duration',
  labels: 'map',
  enableMessageOrdering: 'bool',
  expirationPolicy: { fields: { ttl: 'duration' } },
  filter: 'string',
  deadLetterPolicy: { fields: { deadLetterTopic: 'string', maxDeliveryAttempts: 'int32' } },
  retryPolicy: { fields: { minimumBackoff: 'duration', maximumBackoff: 'duration' } },
  enableExactlyOnceDelivery: 'bool',
  bigqueryConfig: {
    fields: {
      table: 'string',
      useTopicSchema: 'bool',
      writeMetadata: 'bool',
      dropUnknownFields: 'bool',
      useTableSchema: 'bool',
      serviceAccountEmail: 'string',
    },
  },
};
