/**
 * The fields of google.cloud.tasks.v2 for its REST form, as in @google-cloud/tasks 7.1.0. A test compares them with the
 * protos. Fields that the server does not honour are here too: it is the methods that refuse them.
 */
import type { Fields } from '../proto-json.ts';

const ROUTING: Fields = { service: 'string', version: 'string', instance: 'string', host: 'string' };

const QUEUE: Fields = {
  name: 'string',
  appEngineRoutingOverride: { fields: ROUTING },
  rateLimits: {
    fields: { maxDispatchesPerSecond: 'double', maxBurstSize: 'int32', maxConcurrentDispatches: 'int32' },
  },
  retryConfig: {
    fields: {
      maxAttempts: 'int32',
      maxRetryDuration: 'duration',
      minBackoff: 'duration',
      maxBackoff: 'duration',
      maxDoublings: 'int32',
    },
  },
  state: { values: ['STATE_UNSPECIFIED', 'RUNNING', 'PAUSED', 'DISABLED'] },
  purgeTime: 'timestamp',
  stackdriverLoggingConfig: { fields: { samplingRatio: 'double' } },
};

const HTTP_METHOD = {
  values: ['HTTP_METHOD_UNSPECIFIED', 'POST', 'GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'],
};
const VIEW = { values: ['VIEW_UNSPECIFIED', 'BASIC', 'FULL'] };

const ATTEMPT: Fields = {
  scheduleTime: 'timestamp',
  dispatchTime: 'timestamp',
  responseTime: 'timestamp',
  responseStatus: { fields: { code: 'int32', message: 'string' } },
};

const TASK: Fields = {
  name: 'string',
  appEngineHttpRequest: {
    fields: {
      httpMethod: HTTP_METHOD,
      appEngineRouting: { fields: ROUTING },
      relativeUri: 'string',
      headers: 'map',
      body: 'bytes',
    },
  },
  httpRequest: {
    fields: {
      url: 'string',
      httpMethod: HTTP_METHOD,
      headers: 'map',
      body: 'bytes',
      oauthToken: { fields: { serviceAccountEmail: 'string', scope: 'string' } },
      oidcToken: { fields: { serviceAccountEmail: 'string', audience: 'string' } },
    },
  },
  scheduleTime: 'timestamp',
  createTime: 'timestamp',
  dispatchDeadline: 'duration',
  dispatchCount: 'int32',
  responseCount: 'int32',
  firstAttempt: { fields: ATTEMPT },
  lastAttempt: { fields: ATTEMPT },
  view: VIEW,
};

const BY_NAME: Fields = { name: 'string' };
const VIEW_OF_NAME: Fields = { name: 'string', responseView: VIEW };
const PAGE: Fields = { parent: 'string', pageSize: 'int32', pageToken: 'string' };

/** google.iam.v1.Policy. */
const POLICY: Fields = {
  version: 'int32',
  bindings: {
    list: {
      role: 'string',
      members: 'strings',
      condition: {
        fields: { expression: 'string', title: 'string', description: 'string', location: 'string' },
      },
    },
  },
  auditConfigs: {
    list: {
      service: 'string',
      auditLogConfigs: {
        list: {
          logType: { values: ['LOG_TYPE_UNSPECIFIED', 'ADMIN_READ', 'DATA_WRITE', 'DATA_READ'] },
          exemptedMembers: 'strings',
        },
      },
    },
  },
  etag: 'bytes',
};

type Shape = Readonly<{ request: Fields; reply: Fields }>;

/** By the name of the RPC. Those that are missing are UNIMPLEMENTED. */
export const MESSAGES: Readonly<Record<string, Shape>> = {
  ListQueues: {
    request: { ...PAGE, filter: 'string' },
    reply: { queues: { list: QUEUE }, nextPageToken: 'string' },
  },
  GetQueue: { request: BY_NAME, reply: QUEUE },
  CreateQueue: { request: { parent: 'string', queue: { fields: QUEUE } }, reply: QUEUE },
  UpdateQueue: { request: { queue: { fields: QUEUE }, updateMask: 'fieldMask' }, reply: QUEUE },
  DeleteQueue: { request: BY_NAME, reply: {} },
  PurgeQueue: { request: BY_NAME, reply: QUEUE },
  PauseQueue: { request: BY_NAME, reply: QUEUE },
  ResumeQueue: { request: BY_NAME, reply: QUEUE },
  ListTasks: {
    request: { ...PAGE, responseView: VIEW },
    reply: { tasks: { list: TASK }, nextPageToken: 'string' },
  },
  GetTask: { request: VIEW_OF_NAME, reply: TASK },
  CreateTask: { request: { parent: 'string', task: { fields: TASK }, responseView: VIEW }, reply: TASK },
  DeleteTask: { request: BY_NAME, reply: {} },
  RunTask: { request: VIEW_OF_NAME, reply: TASK },
  GetIamPolicy: {
    request: { resource: 'string', options: { fields: { requestedPolicyVersion: 'int32' } } },
    reply: POLICY,
  },
  SetIamPolicy: {
    request: { resource: 'string', policy: { fields: POLICY }, updateMask: 'fieldMask' },
    reply: POLICY,
  },
  TestIamPermissions: {
    request: { resource: 'string', permissions: 'strings' },
    reply: { permissions: 'strings' },
  },
};
