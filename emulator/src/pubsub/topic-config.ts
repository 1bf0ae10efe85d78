/** What a topic can be configured to: labels and retention. Everything else that a request may set is refused by name. */
import { invalidArgument } from '../grpc-server.ts';
import { assertLabels } from './labels.ts';
import { assertName } from './names.ts';
import { maskedFields, refuseSet, snakeCase } from './refuse.ts';
import { durationMs, type Duration, type FieldMask, type Topic } from './wire.ts';

const NOT_CARRIED_OUT = [
  'messageStoragePolicy',
  'kmsKeyName',
  'schemaSettings',
  'ingestionDataSourceSettings',
  'messageTransforms',
  'tags',
];
/** 10 minutes to 31 days: google/pubsub/v1/pubsub.proto. */
const RETENTION_SECONDS = { min: 600, max: 2_678_400 };

/** Throws INVALID_ARGUMENT for an illegal name and UNIMPLEMENTED for what this server does not carry out. */
export function newTopic(request: Topic): Topic {
  assertName('topics', request.name);
  refuseSet('topic', request, NOT_CARRIED_OUT);
  const { name, labels, messageRetentionDuration } = request;
  assertLabels(labels);
  assertRetention(messageRetentionDuration);
  return { name, labels, messageRetentionDuration, state: 'ACTIVE' };
}

/** Throws INVALID_ARGUMENT for every masked field but `labels` and `message_retention_duration`, and as above. */
export function changedTopic(current: Topic, request: Topic, mask: FieldMask | null): Topic {
  let changed = current;
  for (const field of maskedFields(mask, 'UpdateTopicRequest')) {
    if (field === 'labels') {
      assertLabels(request.labels);
      changed = { ...changed, labels: request.labels };
    } else if (field === 'messageRetentionDuration') {
      assertRetention(request.messageRetentionDuration);
      changed = { ...changed, messageRetentionDuration: request.messageRetentionDuration };
    } else {
      throw invalidArgument(
        `Invalid update_mask provided in the UpdateTopicRequest: '${snakeCase(field)}' cannot be updated.`,
      );
    }
  }
  return changed;
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
