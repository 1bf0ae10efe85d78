/** The documents behind the cases. */

/** Public recordings of the production service, kept as golden files by an open-source emulator, 2026. */
export const RECORDED = 'recorded from the service: cloud-tasks';

const REST = 'https://cloud.google.com/tasks/docs/reference/rest/v2';
export const CREATE_QUEUE = `${REST}/projects.locations.queues/create`;
export const UPDATE_QUEUE = `${REST}/projects.locations.queues/patch`;
export const DELETE_QUEUE =
  'https://docs.cloud.google.com/tasks/docs/reference/rest/v2/projects.locations.queues/delete';
export const LIST_QUEUES =
  'https://docs.cloud.google.com/tasks/docs/reference/rest/v2/projects.locations.queues/list';
export const LIST_QUEUES_FILTER =
  'https://cloud.google.com/workflows/docs/reference/googleapis/cloudtasks/v2/projects.locations.queues/list';
export const TASK = `${REST}/projects.locations.queues.tasks`;
export const LIST_TASKS = `${REST}/projects.locations.queues.tasks/list`;
export const RUN_TASK = `${REST}/projects.locations.queues.tasks/run`;
export const QUOTAS = 'https://cloud.google.com/tasks/docs/quotas';

/** The reference of the API's messages and methods, generated from its protos. */
export const METHODS =
  'https://docs.cloud.google.com/dotnet/docs/reference/Google.Cloud.Tasks.V2/latest/Google.Cloud.Tasks.V2.CloudTasks.CloudTasksClient';
export const QUEUE =
  'https://cloud.google.com/python/docs/reference/cloudtasks/2.13.2/google.cloud.tasks_v2.types.Queue';
export const RATE_LIMITS = 'https://cloud.google.com/php/docs/reference/cloud-tasks/1.14.4/V2.RateLimits';
export const RETRY_CONFIG =
  'https://cloud.google.com/python/docs/reference/cloudtasks/2.13.2/google.cloud.tasks_v2.types.RetryConfig';
export const HTTP_REQUEST =
  'https://cloud.google.com/dotnet/docs/reference/Google.Cloud.Tasks.V2/latest/Google.Cloud.Tasks.V2.HttpRequest';
export const APP_ENGINE_REQUEST =
  'https://cloud.google.com/php/docs/reference/cloud-tasks/latest/V2.AppEngineHttpRequest';
export const RETRYING =
  'https://cloud.google.com/appengine/docs/standard/services/taskqueue/push/retrying-tasks?hl=en';

export const HTTP_HANDLER = 'https://cloud.google.com/tasks/docs/creating-http-target-tasks#handler';
export const HTTP_TOKEN = 'https://cloud.google.com/tasks/docs/creating-http-target-tasks#token';
export const APP_ENGINE_HANDLER =
  'https://cloud.google.com/tasks/docs/creating-appengine-handlers#reading-headers';
export const PITFALLS = 'https://cloud.google.com/tasks/docs/common-pitfalls';

/** How every API of Google's maps gRPC to HTTP. */
export const ERRORS = 'https://cloud.google.com/apis/design/errors#http_mapping';
export const JSON_MAPPING = 'https://protobuf.dev/programming-guides/json';

export const IAM = 'https://github.com/googleapis/googleapis/blob/master/google/iam/v1/iam_policy.proto';
export const POLICY = 'https://github.com/googleapis/googleapis/blob/master/google/iam/v1/policy.proto';
