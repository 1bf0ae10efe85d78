/** The permissions that Pub/Sub's methods need: https://cloud.google.com/pubsub/docs/access-control#required_permissions */
import { status } from '@grpc/grpc-js';
import { StatusError } from '../grpc-server.ts';
import { checkCalls, need, type Check, type Needs } from '../iam/guard.ts';
import type { IamPorts } from '../iam/methods.ts';
import type { Registry } from './registry.ts';

const SUBSCRIPTION = 'subscription';
const CONSUME = [need('pubsub.subscriptions.consume', SUBSCRIPTION)];
const DETACH = 'pubsub.topics.detachSubscription';
const ATTACH = 'pubsub.schemas.attach';

const NEEDS: Needs = {
  CreateTopic: [need(ATTACH, 'schemaSettings.schema')],
  UpdateTopic: [need('pubsub.topics.update', 'topic.name'), need(ATTACH, 'topic.schemaSettings.schema')],
  Publish: [need('pubsub.topics.publish', 'topic')],
  GetTopic: [need('pubsub.topics.get', 'topic')],
  ListTopicSubscriptions: [need('pubsub.topics.get', 'topic')],
  ListTopicSnapshots: [need('pubsub.topics.get', 'topic')],
  DeleteTopic: [need('pubsub.topics.delete', 'topic')],
  CreateSubscription: [need('pubsub.topics.attachSubscription', 'topic')],
  GetSubscription: [need('pubsub.subscriptions.get', SUBSCRIPTION)],
  UpdateSubscription: [need('pubsub.subscriptions.update', 'subscription.name')],
  DeleteSubscription: [need('pubsub.subscriptions.delete', SUBSCRIPTION)],
  // Of the topic alone: https://cloud.google.com/pubsub/docs/detach-subscriptions
  DetachSubscription: [need(DETACH, SUBSCRIPTION)],
  ModifyPushConfig: [need('pubsub.subscriptions.update', SUBSCRIPTION)],
  ModifyAckDeadline: CONSUME,
  Acknowledge: CONSUME,
  Pull: CONSUME,
  StreamingPull: CONSUME,
  CreateSnapshot: CONSUME,
  Seek: [...CONSUME, need('pubsub.snapshots.seek', 'snapshot')],
  GetSnapshot: [need('pubsub.snapshots.get', 'snapshot')],
  UpdateSnapshot: [need('pubsub.snapshots.update', 'snapshot.name')],
  DeleteSnapshot: [need('pubsub.snapshots.delete', 'snapshot')],
  GetSchema: [need('pubsub.schemas.get', 'name')],
  ListSchemaRevisions: [need('pubsub.schemas.listRevisions', 'name')],
  CommitSchema: [need('pubsub.schemas.commit', 'name')],
  RollbackSchema: [need('pubsub.schemas.rollback', 'name')],
  DeleteSchemaRevision: [need('pubsub.schemas.delete', 'name')],
  DeleteSchema: [need('pubsub.schemas.delete', 'name')],
  ValidateMessage: [need('pubsub.schemas.get', 'name')],
};

/** The schema of a revision, and the topic of a subscription that is to be detached. */
function policyOwner(registry: Pick<Registry, 'find'>, name: string, permission: string): string {
  if (permission === DETACH) return registry.find(name)?.config().topic ?? '';
  return name.split('@')[0] ?? '';
}

/** In the words of the service: https://github.com/googleapis/nodejs-pubsub/issues/1180 */
const notAuthorized = (): StatusError =>
  new StatusError(status.PERMISSION_DENIED, 'User not authorized to perform this action.');

export const pubsubCheck = (registry: Pick<Registry, 'find'>, iam: IamPorts): Check =>
  checkCalls({
    ...iam,
    needs: NEEDS,
    owner: (name, permission) => policyOwner(registry, name, permission),
    refusal: notAuthorized,
  });
