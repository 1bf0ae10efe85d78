/**
 * Every right that the modules grant, and to whom. A module that grants one more, or one less, is a finding: least
 * privilege is decided here, not in passing. Roles in braces are those of a `for_each`.
 */
export const GRANTS: Readonly<Record<string, readonly string[]>> = {
  'modules/project': [
    'storage_bucket: roles/storage.objectViewer to build',
    'project: {roles/artifactregistry.writer, roles/logging.logWriter, roles/storage.objectViewer} to build, under a condition',
  ],
  'modules/guarantee': [
    'pubsub_topic (target_topic): roles/pubsub.publisher to runtime',
    'pubsub_topic (dead_letters): roles/pubsub.publisher to runtime',
    'pubsub_topic (dead_letters): roles/pubsub.publisher to pubsub_agent',
    'pubsub_topic (each of outbox_topics): roles/pubsub.publisher to runtime',
    'pubsub_subscription (push): roles/pubsub.viewer to runtime',
    'pubsub_subscription (push): roles/pubsub.subscriber to pubsub_agent',
    'project: roles/datastore.user to runtime, under a condition',
    // The custom role of the republisher: appengine.applications.get and nothing else.
    'project: ${local.republisher.app_engine_role} to runtime',
    'secret_manager_secret: roles/secretmanager.secretAccessor to runtime',
    'cloud_tasks_queue (each of delay): roles/cloudtasks.enqueuer to runtime',
    'cloud_tasks_queue (wake_queue): roles/cloudtasks.enqueuer to runtime',
    'service_account (caller): roles/iam.serviceAccountUser to runtime',
    'service_account (push): roles/iam.serviceAccountUser to runtime',
    'service_account (push): roles/iam.serviceAccountTokenCreator to pubsub_agent',
    'cloud_run_service: roles/run.invoker to push',
  ],
  'modules/republisher': [
    'pubsub_topic (each of allowed_topics): roles/pubsub.publisher to runtime',
    'pubsub_topic (dead_letters): roles/pubsub.publisher to runtime',
    'project: roles/datastore.user to runtime, under a condition',
    'project: ${google_project_iam_custom_role.tasks[0].name} to runtime',
    'project: {roles/artifactregistry.writer, roles/logging.logWriter, roles/storage.objectViewer} to runtime, under a condition',
    'storage_bucket: roles/storage.objectViewer to runtime',
    'cloud_tasks_queue (each of queues): roles/cloudtasks.enqueuer to runtime',
    'service_account (caller): roles/iam.serviceAccountUser to runtime',
    'cloud_run_v2_service: roles/run.invoker to caller',
  ],
  'modules/sweep': ['cloud_run_service: roles/run.invoker to sweep'],
  'modules/outbox-trigger': [
    'cloud_run_service: roles/run.invoker to outbox',
    'project: roles/eventarc.eventReceiver to outbox',
  ],
};
