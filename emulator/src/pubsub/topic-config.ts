/** What a topic can be configured to: labels, retention and a schema. Everything else that a request may set is refused by name. */
import { invalidArgument } from '../grpc-server.ts';
import { assertLabels } from './labels.ts';
import { assertName } from './names.ts';
import { maskedFields, refuseSet, snakeCase } from './refuse.ts';
import { changedSettings, schemaSettings } from './schemas/topic-schema.ts';
import { durationMs, type Duration, type FieldMask, type Topic } from './wire.ts';

const NOT_CARRIED_OUT = [
  'messageStoragePolicy',
  'kmsKeyName',
  'ingestionDataSourceSettings',
  'messageTransforms',
  'tags',
];
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
    state: 'ACTIVE',
  };
}

/**
 * Throws INVALID_ARGUMENT for every masked field but `labels`, `message_retention_duration` and `schema_settings` with
 * what is in it, and as above.
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
