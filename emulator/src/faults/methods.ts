/**
 * The methods that a rule can name, what each is about, and which actions fit it.
 *
 * `about` lists where the resource of a request is: the first path that holds a text counts. Beside the RPCs stand what
 * the servers do by themselves: `deliver` and `push` (about a subscription), `dispatch` (about a queue) and `trigger` (about a collection).
 */
import type { ActionType, Service } from './plan.ts';

type Kind = 'unary' | 'serverStream' | 'bidiStream' | 'deliver' | 'request' | 'trigger';

export type Method = Readonly<{
  kind: Kind;
  about: readonly string[];
  /** Actions beyond those of its kind. */
  also?: ActionType;
}>;

const unary = (...about: readonly string[]): Method => ({ kind: 'unary', about });
const serverStream = (...about: readonly string[]): Method => ({ kind: 'serverStream', about });
const bidiStream = (...about: readonly string[]): Method => ({ kind: 'bidiStream', about });
const request: Method = { kind: 'request', about: [] };

const TOPIC = unary('topic');
const SUBSCRIPTION = unary('subscription');
const SNAPSHOT = unary('snapshot');
const PROJECT = unary('project');
const NAME = unary('name');
const PARENT = unary('parent');
const POLICIES: Readonly<Record<string, Method>> = {
  GetIamPolicy: unary('resource'),
  SetIamPolicy: unary('resource'),
  TestIamPermissions: unary('resource'),
};
const ACK: Method = { ...SUBSCRIPTION, also: 'drop-ack' };

const PUBSUB: Readonly<Record<string, Method>> = {
  CreateTopic: unary('name'),
  UpdateTopic: unary('topic.name'),
  Publish: { ...TOPIC, also: 'duplicate' },
  GetTopic: TOPIC,
  ListTopics: PROJECT,
  ListTopicSubscriptions: TOPIC,
  ListTopicSnapshots: TOPIC,
  DeleteTopic: TOPIC,
  DetachSubscription: SUBSCRIPTION,
  CreateSubscription: unary('name'),
  GetSubscription: SUBSCRIPTION,
  UpdateSubscription: unary('subscription.name'),
  ListSubscriptions: PROJECT,
  DeleteSubscription: SUBSCRIPTION,
  ModifyAckDeadline: ACK,
  Acknowledge: ACK,
  Pull: SUBSCRIPTION,
  StreamingPull: bidiStream('subscription'),
  ModifyPushConfig: SUBSCRIPTION,
  GetSnapshot: SNAPSHOT,
  ListSnapshots: PROJECT,
  CreateSnapshot: unary('name', 'subscription'),
  UpdateSnapshot: unary('snapshot.name'),
  DeleteSnapshot: SNAPSHOT,
  Seek: SUBSCRIPTION,
  /** By the project: the schema has no name yet. */
  CreateSchema: PARENT,
  GetSchema: NAME,
  ListSchemas: PARENT,
  ListSchemaRevisions: NAME,
  CommitSchema: NAME,
  RollbackSchema: NAME,
  DeleteSchemaRevision: NAME,
  DeleteSchema: NAME,
  ValidateSchema: PARENT,
  ValidateMessage: unary('name', 'parent'),
  ...POLICIES,
  deliver: { kind: 'deliver', about: [] },
  push: request,
};

const WRITES = unary('writes.0.update.name', 'writes.0.delete', 'writes.0.transform.document', 'database');
const FIRESTORE: Readonly<Record<string, Method>> = {
  GetDocument: unary('name'),
  ListDocuments: unary('parent'),
  UpdateDocument: unary('document.name'),
  DeleteDocument: unary('name'),
  CreateDocument: unary('parent'),
  BatchGetDocuments: serverStream('documents.0', 'database'),
  BeginTransaction: unary('database'),
  Commit: WRITES,
  BatchWrite: WRITES,
  Rollback: unary('database'),
  RunQuery: serverStream('parent'),
  RunAggregationQuery: serverStream('parent'),
  PartitionQuery: unary('parent'),
  ListCollectionIds: unary('parent'),
  Listen: bidiStream('database'),
  trigger: { kind: 'trigger', about: [] },
};

/** A task is counted with its queue. */
const TASK = unary('name');
const QUEUE = unary('name');
const TASKS: Readonly<Record<string, Method>> = {
  ListQueues: unary('parent'),
  GetQueue: QUEUE,
  CreateQueue: unary('queue.name', 'parent'),
  UpdateQueue: unary('queue.name'),
  DeleteQueue: QUEUE,
  PurgeQueue: QUEUE,
  PauseQueue: QUEUE,
  ResumeQueue: QUEUE,
  ListTasks: unary('parent'),
  GetTask: TASK,
  CreateTask: unary('parent'),
  DeleteTask: TASK,
  RunTask: TASK,
  ...POLICIES,
  dispatch: request,
};

export const METHODS: Readonly<Record<Service, Readonly<Record<string, Method>>>> = {
  pubsub: PUBSUB,
  firestore: FIRESTORE,
  tasks: TASKS,
};

/** Each action with the fields that it takes there. */
const FIELDS: Readonly<Record<Kind, Readonly<Partial<Record<ActionType, readonly string[]>>>>> = {
  unary: {
    fail: ['code', 'message'],
    'lose-reply': ['code'],
    delay: ['ms'],
    cut: ['when'],
    restart: ['state', 'downMs'],
  },
  serverStream: {
    fail: ['code', 'message'],
    'lose-reply': ['code'],
    delay: ['ms'],
    cut: ['afterMessages'],
    restart: ['state', 'downMs'],
  },
  bidiStream: {
    fail: ['code', 'message'],
    delay: ['ms'],
    cut: ['afterMessages'],
    restart: ['state', 'downMs'],
  },
  deliver: { delay: ['ms'], duplicate: [], reorder: ['window', 'atMostMs'] },
  request: { fail: ['status'], 'lose-reply': [], delay: ['ms'], duplicate: [] },
  trigger: { fail: ['status'], 'lose-reply': [], delay: ['ms'], duplicate: [], lose: [] },
};

/** The fields that the action takes with the method; undefined where it does not fit. */
export function fieldsOf({ kind, also }: Method, type: ActionType): readonly string[] | undefined {
  return also === type ? [] : FIELDS[kind][type];
}

/** The actions that fit the method. */
export function actionsOf({ kind, also }: Method): readonly string[] {
  return [...Object.keys(FIELDS[kind]), ...(also === undefined ? [] : [also])];
}

export const isRpc = ({ kind }: Method): boolean =>
  kind !== 'deliver' && kind !== 'request' && kind !== 'trigger';

const TASK_NAME = /^(projects\/[^/]+\/locations\/[^/]+\/queues\/[^/]+)\/tasks\/[^/]*$/;

/** What a request is about; '' where it does not say. */
export function resourceOf(method: Method, message: unknown): string {
  for (const path of method.about) {
    let value: unknown = message;
    for (const step of path.split('.')) {
      value = typeof value === 'object' && value !== null ? Reflect.get(value, step) : undefined;
    }
    if (typeof value === 'string' && value !== '') return TASK_NAME.exec(value)?.[1] ?? value;
  }
  return '';
}
