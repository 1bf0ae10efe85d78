/** The documents that the cases are taken from. */
export const PROTO = 'https://github.com/googleapis/googleapis/blob/master/google/pubsub/v1/pubsub.proto';
export const CODES = 'https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto';
export const ERROR_CODES = 'https://docs.cloud.google.com/pubsub/docs/reference/error-codes';
export const NAMES = 'https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names';
export const PUBLISHER = 'https://docs.cloud.google.com/pubsub/docs/publisher';
export const QUOTAS = 'https://cloud.google.com/pubsub/quotas#resource_limits';
export const LABELS = 'https://cloud.google.com/pubsub/docs/labels';
export const ORDERING = 'https://docs.cloud.google.com/pubsub/docs/ordering';
export const FILTERS = 'https://cloud.google.com/pubsub/docs/subscription-message-filter';
export const EXACTLY_ONCE = 'https://cloud.google.com/pubsub/docs/exactly-once-delivery';
export const DEAD_LETTERS = 'https://cloud.google.com/pubsub/docs/handling-failures';
export const REPLAY = 'https://cloud.google.com/pubsub/docs/replay-overview';
export const EXPIRATION = 'https://cloud.google.com/pubsub/docs/create-subscription';
export const PUSH = 'https://cloud.google.com/pubsub/docs/push#receive_push';
export const PUSH_BACKOFF = 'https://cloud.google.com/pubsub/docs/push#push_backoff';
export const UNWRAPPING = 'https://cloud.google.com/pubsub/docs/payload-unwrapping';
export const PUSH_TOKENS = 'https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions';
export const SCHEMA_PROTO =
  'https://github.com/googleapis/googleapis/blob/master/google/pubsub/v1/schema.proto';
export const SCHEMAS = 'https://cloud.google.com/pubsub/docs/schemas';
export const COMMIT_SCHEMA = 'https://cloud.google.com/pubsub/docs/commit-schema-revision';
export const DELETE_REVISION = 'https://cloud.google.com/pubsub/docs/delete-schema-revision';
export const TOPIC_SCHEMA = 'https://cloud.google.com/pubsub/docs/associate-schema-topic';
/** A program's record of what the service answered. */
export const RECORDED_REFUSAL = 'https://github.com/googleapis/google-cloud-go/issues/8179';
export const IAM = 'https://github.com/googleapis/googleapis/blob/master/google/iam/v1/iam_policy.proto';
export const POLICY = 'https://github.com/googleapis/googleapis/blob/master/google/iam/v1/policy.proto';
