/** What a topic can be configured to: labels. Everything else that a request may set is refused by name. */
import { invalidArgument } from '../grpc-server.ts';
import { assertName } from './names.ts';
import { maskedFields, refuseSet, snakeCase } from './refuse.ts';
import type { FieldMask, Topic } from './wire.ts';

const NOT_CARRIED_OUT = [
  'messageStoragePolicy',
  'kmsKeyName',
  'schemaSettings',
  'messageRetentionDuration',
  'ingestionDataSourceSettings',
  'messageTransforms',
  'tags',
];

/** Throws INVALID_ARGUMENT for an illegal name and UNIMPLEMENTED for what this server does not carry out. */
export function newTopic(request: Topic): Topic {
  assertName('topics', request.name);
  refuseSet('topic', request, NOT_CARRIED_OUT);
  return { name: request.name, labels: request.labels, state: 'ACTIVE' };
}

/** Throws INVALID_ARGUMENT for every masked field but `labels`. */
export function changedTopic(current: Topic, request: Topic, mask: FieldMask | null): Topic {
  for (const field of maskedFields(mask, 'UpdateTopicRequest')) {
    if (field !== 'labels') {
      throw invalidArgument(
        `Invalid update_mask provided in the UpdateTopicRequest: '${snakeCase(field)}' cannot be updated.`,
      );
    }
  }
  return { ...current, labels: request.labels };
}
