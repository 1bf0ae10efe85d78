/**
 * The checks of whole plans: they find nothing in the kept ones, and each finds the defect that is planted for it.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkPlanned } from './planned-check.ts';
import { KEPT, type Planned, readPlan } from './plans.ts';

for (const name of KEPT) {
  test(`${name} is planned without a finding`, async () => {
    assert.deepEqual(checkPlanned((await readPlan(name)).resources), []);
  });
}

type Planted = Readonly<{
  plan?: (typeof KEPT)[number];
  /** What is changed: the first resource of this type whose text has `from`. `to` null: it is left out. */
  type: string;
  from: string;
  to: string | null;
  finds: RegExp;
}>;

const FUNCTION = 'google_cloudfunctions2_function';
const SUBSCRIPTION = 'google_pubsub_subscription';
const ALERT = 'google_monitoring_alert_policy';
const PLANTED: Readonly<Record<string, Planted>> = {
  'a function that every caller can reach': {
    type: FUNCTION,
    from: 'ALLOW_INTERNAL_ONLY',
    to: 'ALLOW_ALL',
    finds: /must not be reached from outside/,
  },
  'a password in a variable': {
    type: FUNCTION,
    from: '"LOG_EXECUTION_ID":"true"',
    to: '"REDIS_URL":"rediss://:auth-string@10.0.0.3:6378"',
    finds: /REDIS_URL is a secret in the open/,
  },
  'a password where the name of a secret belongs': {
    plan: 'redis',
    type: FUNCTION,
    from: '"secret":"guarantees-redis-url"',
    to: '"secret":"auth-string"',
    finds: /a password stands in its configuration/,
  },
  'a Pub/Sub that may not make tokens': {
    type: 'google_service_account_iam_member',
    from: 'roles/iam.serviceAccountTokenCreator',
    to: null,
    finds: /Pub\/Sub’s own account lacks roles\/iam\.serviceAccountTokenCreator/,
  },
  'a Pub/Sub that may not forward dead letters': {
    type: 'google_pubsub_topic_iam_member',
    from: '@gcp-sa-pubsub.',
    to: null,
    finds: /Pub\/Sub’s own account lacks roles\/pubsub\.publisher/,
  },
  'a Redis without its secret': {
    plan: 'redis',
    type: FUNCTION,
    from: '"key":"REDIS_URL"',
    to: '"key":"REDIS"',
    finds: /REDIS_URL must be a secret/,
  },
  'certificates that are looked for elsewhere': {
    plan: 'redis',
    type: FUNCTION,
    from: '"/etc/redis/ca.pem"',
    to: '"/etc/redis/server-ca.pem"',
    finds: /NODE_EXTRA_CA_CERTS is not where it is mounted/,
  },
  'an ack deadline below the function’s timeout': {
    type: SUBSCRIPTION,
    from: '"ack_deadline_seconds":90',
    to: '"ack_deadline_seconds":65',
    finds: /its deadlines do not rise/,
  },
  'messages that outlive their records': {
    type: SUBSCRIPTION,
    from: '"message_retention_duration":"604800s","name":"orders-once-push"',
    to: '"message_retention_duration":"2678400s","name":"orders-once-push"',
    finds: /messages outlive their records/,
  },
  'a subscription on the target': {
    type: SUBSCRIPTION,
    from: 'topics/orders"',
    to: 'topics/orders-unique"',
    finds: /its subscription is on what it publishes to/,
  },
  'dead letters that go elsewhere': {
    type: SUBSCRIPTION,
    from: '"dead_letter_topic":"projects/demo-project/topics/orders-once-dead-letters"',
    to: '"dead_letter_topic":"projects/demo-project/topics/republisher-dead-letters"',
    finds: /dead letters go elsewhere/,
  },
  'a push for another audience': {
    type: SUBSCRIPTION,
    from: '"audience":"https://orders-once',
    to: '"audience":"https://orders',
    finds: /audience of the push must be its URL/,
  },
  'a sweep for another audience': {
    type: 'google_cloud_scheduler_job',
    from: 'run.app","service_account_email"',
    to: 'run.app/sweep","service_account_email"',
    finds: /audience must be the function’s URL/,
  },
  'a sweep that is cut off': {
    type: 'google_cloud_scheduler_job',
    from: '"180s"',
    to: '"30s"',
    finds: /attempt_deadline ends before the sweep/,
  },
  'another of Google’s accounts than Pub/Sub’s': {
    type: 'google_pubsub_subscription_iam_member',
    from: '@gcp-sa-pubsub.',
    to: '@gcp-sa-cloudtasks.',
    finds: /@gcp-sa-cloudtasks\.iam\.gserviceaccount\.com is not known/,
  },
  'a condition for another database': {
    type: 'google_project_iam_member',
    from: 'databases/pubsub-guarantees',
    to: 'databases/(default)',
    finds: /the condition is not for the account’s database/,
  },
  'a condition that always holds': {
    type: 'google_project_iam_member',
    from: 'resource.name == \\"projects/demo-project/databases/pubsub-guarantees\\"',
    to: 'true',
    finds: /the condition is not for the account’s database: true/,
  },
  'another region': {
    type: 'google_cloud_tasks_queue',
    from: 'europe-west1',
    to: 'us-central1',
    finds: /it is in us-central1, and the functions in europe-west1/,
  },
  'a Redis in another region': {
    plan: 'redis',
    type: 'google_redis_instance',
    from: 'europe-west1',
    to: 'us-central1',
    finds: /it is in us-central1/,
  },
  'a value that is not accepted': {
    plan: 'redis',
    type: FUNCTION,
    from: 'VPC_EGRESS_PRIVATE_RANGES_ONLY',
    to: 'PRIVATE_RANGES_ONLY',
    finds: /service_config\.direct_vpc_egress: PRIVATE_RANGES_ONLY is not accepted/,
  },
  'a builder that may read every bucket': {
    type: 'google_project_iam_member',
    from: 'resource.name.startsWith(\\"projects/_/buckets/gcf-v2-sources-\\")',
    to: 'true',
    finds: /storage\.objectViewer is for all of the project/,
  },
  'a package under a name that never changes': {
    type: 'google_storage_bucket_object',
    from: 'functions-633354bb2dc682dd5397d44e327bf3bf.zip',
    to: 'functions.zip',
    finds: /without a hash in its name/,
  },
  'an API that is turned off for others': {
    type: 'google_project_service',
    from: '"disable_on_destroy":false',
    to: '"disable_on_destroy":true',
    finds: /disable_on_destroy must be false/,
  },
  'a database that stays behind': {
    type: 'google_firestore_database',
    from: '"DELETE"',
    to: '"ABANDON"',
    finds: /deletion_policy must be DELETE/,
  },
  'a version without a way back': {
    type: 'google_app_engine_standard_app_version',
    from: '"noop_on_destroy":true',
    to: '"noop_on_destroy":false',
    finds: /noop_on_destroy must be true/,
  },
  'a version without calls': {
    type: 'google_app_engine_service_split_traffic',
    from: 'republisher',
    to: null,
    finds: /a new version gets no calls/,
  },
  'instances that are paid for while idle': {
    plan: 'existing-project',
    type: 'google_cloud_run_v2_service',
    from: '"cpu_idle":true',
    to: '"cpu_idle":false',
    finds: /cpu_idle must be true/,
  },
  'wake-ups that are tried for ever': {
    type: 'google_cloud_tasks_queue',
    from: '"max_attempts":5',
    to: '"max_attempts":-1',
    finds: /wake-ups need a queue with a limit of attempts/,
  },
  'wake-ups to another URL': {
    type: FUNCTION,
    from: '"WAKE_URL":"https://ledger-fifo',
    to: '"WAKE_URL":"https://ledger',
    finds: /WAKE_URL is not its URL/,
  },
  'timers that the republisher may not publish': {
    plan: 'redis',
    type: 'google_app_engine_standard_app_version',
    from: '"payments,reminders-due,saga"',
    to: '"payments,reminders-due"',
    finds: /the republisher may not publish to saga/,
  },
  'an orchestrator that hears another topic': {
    plan: 'redis',
    type: SUBSCRIPTION,
    from: 'topics/saga"',
    to: 'topics/stock"',
    finds: /its subscription is not on SAGA_TOPIC/,
  },
  'an orchestrator without a sweep': {
    plan: 'redis',
    type: 'google_cloud_scheduler_job',
    from: 'order-sagas',
    to: null,
    finds: /without a sweep a saga whose timer is lost stands still/,
  },
  'an orchestrator that may not publish to itself': {
    plan: 'redis',
    type: 'google_pubsub_topic_iam_member',
    from: '"serviceAccount:order-sagas-run@demo-project.iam.gserviceaccount.com","project":"demo-project","role":"roles/pubsub.publisher","topic":"saga"',
    to: null,
    finds: /it may not publish its timers to SAGA_TOPIC/,
  },
  'a metric that is not there': {
    type: ALERT,
    from: 'oldest_unacked_message_age',
    to: 'oldest_unacked_age',
    finds: /there is no metric pubsub\.googleapis\.com\/subscription\/oldest_unacked_age/,
  },
  'a filter without a type of resource': {
    type: ALERT,
    from: 'resource.type = \\"pubsub_subscription\\" AND ',
    to: '',
    finds: /resource\.type is missing/,
  },
  'a label that is not there': {
    type: ALERT,
    from: 'resource.labels.queue_id',
    to: 'resource.labels.queue',
    finds: /cloud_tasks_queue has no label queue/,
  },
  'an aligner for another kind of metric': {
    type: ALERT,
    from: 'ALIGN_PERCENTILE_99',
    to: 'ALIGN_MEAN',
    finds: /ALIGN_MEAN is not for cloudtasks/,
  },
  'an alert on the log without a limit': {
    type: ALERT,
    from: '"notification_rate_limit":[{"period":"3600s"}]',
    to: '"notification_rate_limit":[]',
    finds: /needs a notification_rate_limit/,
  },
  'a dashboard of a metric that is not there': {
    type: 'google_monitoring_dashboard',
    from: 'queue/depth',
    to: 'queue/length',
    finds: /there is no metric cloudtasks\.googleapis\.com\/queue\/length/,
  },
};

describe('a planted defect is found:', () => {
  for (const [title, { plan = 'complete', type, from, to, finds }] of Object.entries(PLANTED)) {
    test(title, async () => {
      const { resources } = await readPlan(plan);
      const at = resources.findIndex((one) => one.type === type && JSON.stringify(one).includes(from));
      assert.notEqual(at, -1, `no ${type} of ${plan} has what is to be replaced`);
      const changed =
        to === null ? [] : [JSON.parse(JSON.stringify(resources[at]).replaceAll(from, () => to)) as Planned];
      assert.match(checkPlanned(resources.toSpliced(at, 1, ...changed)).join('\n'), finds);
    });
  }
});
