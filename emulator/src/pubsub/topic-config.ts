/** What a topic can be configured to: labels, retention, a schema, and settings that are kept
 * without effect (ingestion, storage policy, key). What would change messages is refused by name. */
import { invalidArgument } from '../grpc-server.ts';
import { ingestion } from './ingestion.ts';
import { assertLabels } from './labels.ts';
import { assertName } from './names.ts';
import { maskedFields, refuseSet, snakeCase } from './refuse.ts';
import { changedSettings, schemaSettings } from './schemas/topic-schema.ts';
import { kmsKeyName, storagePolicy } from './storage-settings.ts';
import { durationMs, type Duration, type FieldMask, type Ingestion, type Topic } from './wire.ts';

const NOT_CARRIED_OUT = ['messageTransforms', 'tags'];
/** The field whose parts can be changed one by one. */
const SCHEMA = 'schemaSettings';
/** 10 minutes to 31 days: google/pubsub/v1/pubsub.proto. */
const RETENTION_SECONDS = { min: 600, max: 2_678_400 };

/** Throws INVALID_ARGUMENT for an illegal name and UNIMPLEMENTED for what this server does not carry out. */
export function newTopic(request: Topic): Topic {
  assertName('topics', request.name);
  refuseSet('topic', request, NOT_CARRIED_OUT);
  const { name, labels, messageRetentionDuration } = request;
  assertLabels(labels);
  assertRetention(messageRetentionDuration);
  return {
    name,
    labels,
    messageRetentionDuration,
    schemaSettings: schemaSettings(request.schemaSettings ?? null),
    messageStoragePolicy: storagePolicy(request.messageStoragePolicy ?? null),
    kmsKeyName: kmsKeyName(request.kmsKeyName ?? ''),
    ...withIngestion(request.ingestionDataSourceSettings ?? null),
  };
}

/**
 * Throws INVALID_ARGUMENT for a masked field that no update can change, and as above. What is in `schema_settings` can
 * also be named part by part.
 */
export function changedTopic(current: Topic, request: Topic, mask: FieldMask | null): Topic {
  let changed = current;
  for (const field of maskedFields(mask, 'UpdateTopicRequest', [SCHEMA])) {
    const settings = withSchema(changed, request, field);
    if (field === 'labels') {
      assertLabels(request.labels);
      changed = { ...changed, labels: request.labels };
    } else if (field === 'messageRetentionDuration') {
      assertRetention(request.messageRetentionDuration);
      changed = { ...changed, messageRetentionDuration: request.messageRetentionDuration };
    } else if (field === 'messageStoragePolicy') {
      changed = { ...changed, messageStoragePolicy: storagePolicy(request.messageStoragePolicy ?? null) };
    } else if (field === 'ingestionDataSourceSettings') {
      changed = { ...changed, ...withIngestion(request.ingestionDataSourceSettings ?? null) };
    } else if (settings !== undefined) {
      changed = { ...changed, schemaSettings: settings };
    } else {
      throw invalidArgument(
        `Invalid update_mask provided in the UpdateTopicRequest: '${snakeCase(field)}' cannot be updated.`,
      );
    }
  }
  return changed;
}

/** With the state that the topic has by it. */
function withIngestion(given: Ingestion | null): Pick<Topic, 'ingestionDataSourceSettings' | 'state'> {
  const ingestionDataSourceSettings = ingestion(given);
  const state = ingestionDataSourceSettings === null ? 'ACTIVE' : 'INGESTION_RESOURCE_ERROR';
  return { ingestionDataSourceSettings, state };
}

/** Undefined where the field is none of the schema's. */
function withSchema(current: Topic, request: Topic, field: string): Topic['schemaSettings'] {
  const [whole, inner] = field.split('.');
  if (whole !== SCHEMA) return undefined;
  return inner === undefined
    ? schemaSettings(request.schemaSettings ?? null)
    : changedSettings(current.schemaSettings, request.schemaSettings, inner);
}

function assertRetention(value: Duration | null): void {
  if (value === null) return;
  const seconds = durationMs(value) / 1000;
  const { min, max } = RETENTION_SECONDS;
  if (!(seconds >= min && seconds <= max)) {
    throw invalidArgument(
      `Invalid message_retention_duration (seconds): ${seconds}. It must be between ${min} and ${max}.`,
    );
  }
}
