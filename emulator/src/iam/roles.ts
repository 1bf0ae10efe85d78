/**
 * The permissions of Pub/Sub and Cloud Tasks, and which of them the predefined and basic roles have:
 * https://cloud.google.com/pubsub/docs/access-control#roles and https://cloud.google.com/tasks/docs/reference-access-control.
 * What a custom role has is defined elsewhere in a project: it can be granted here, and gives nothing.
 */
const permissions = (prefix: string, verbs: string): readonly string[] =>
  verbs.split(' ').map((verb) => `${prefix}.${verb}`);

/** By the collection that a resource is in. */
export const PERMISSIONS = {
  topics: permissions(
    'pubsub.topics',
    'attachSubscription create delete detachSubscription get getIamPolicy list publish setIamPolicy update updateTag',
  ),
  subscriptions: permissions(
    'pubsub.subscriptions',
    'consume create delete get getIamPolicy list setIamPolicy update',
  ),
  snapshots: permissions('pubsub.snapshots', 'create delete get getIamPolicy list seek setIamPolicy update'),
  schemas: permissions(
    'pubsub.schemas',
    'attach commit create delete get getIamPolicy list listRevisions rollback setIamPolicy validate',
  ),
  queues: [
    ...permissions(
      'cloudtasks.queues',
      'create delete get getIamPolicy list pause purge resume setIamPolicy update',
    ),
    ...permissions('cloudtasks.tasks', 'create delete fullView get list run'),
  ],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type Collection = keyof typeof PERMISSIONS;

const ALL: readonly string[] = Object.values(PERMISSIONS).flat();
const PUBSUB = ALL.filter((name) => name.startsWith('pubsub.'));
const QUEUES = ALL.filter((name) => name.startsWith('cloudtasks.queues.'));
const TASKS = ALL.filter((name) => name.startsWith('cloudtasks.'));
const withoutPolicies = (names: readonly string[]): readonly string[] =>
  names.filter((name) => !name.endsWith('IamPolicy'));
const readers = (names: readonly string[]): readonly string[] =>
  names.filter((name) => /\.(?:get|list|listRevisions|validate|fullView)$/.test(name));

const ROLES: Readonly<Record<string, readonly string[]>> = {
  'roles/owner': ALL,
  'roles/editor': withoutPolicies(ALL),
  'roles/viewer': readers(ALL),
  'roles/pubsub.admin': PUBSUB,
  'roles/pubsub.editor': withoutPolicies(PUBSUB),
  'roles/pubsub.viewer': readers(PUBSUB),
  'roles/pubsub.publisher': ['pubsub.topics.publish'],
  'roles/pubsub.subscriber': [
    'pubsub.snapshots.seek',
    'pubsub.subscriptions.consume',
    'pubsub.topics.attachSubscription',
  ],
  'roles/cloudtasks.admin': TASKS,
  'roles/cloudtasks.viewer': readers(TASKS),
  'roles/cloudtasks.queueAdmin': QUEUES,
  'roles/cloudtasks.enqueuer': ['cloudtasks.tasks.create', 'cloudtasks.tasks.fullView'],
  'roles/cloudtasks.taskDeleter': ['cloudtasks.tasks.delete'],
  'roles/cloudtasks.taskRunner': ['cloudtasks.tasks.fullView', 'cloudtasks.tasks.run'],
};

/** Nothing for a role that is not known. */
export const permissionsOf = (role: string): readonly string[] => ROLES[role] ?? [];

const CUSTOM = /^(?:projects|organizations)\/[^/\s]+\/roles\/[\w.]+$/;
const OURS = /^roles\/(?:pubsub|cloudtasks)\./;

/** Whether it can be granted. Roles of other services are known by their form alone. */
export function isRole(role: string): boolean {
  if (Object.hasOwn(ROLES, role) || CUSTOM.test(role)) return true;
  return /^roles\/[a-zA-Z][\w.]*$/.test(role) && !OURS.test(role);
}
