/**
 * What a whole plan must keep to, judged on its values: that what belongs together says the same, that nothing is
 * reached from outside or holds a secret in the open, and that values are among those that the platform accepts.
 */
import { at, text } from './facts/values.ts';
import { checkDashboard, checkMetricFilter } from './filters.ts';
import { ACCEPTED } from './known-values.ts';
import { type Json, listOf, objectOf, textOf } from './module.ts';
import {
  accountOf,
  delays,
  environmentOf,
  functions,
  noSecrets,
  orchestrates,
  seconds,
  subscribed,
  unless,
  uriOf,
  wakes,
} from './planned-functions.ts';
import type { Planned } from './plans.ts';
import { PROJECT_NUMBER } from './stand-in/outputs.ts';

type Check = (resource: Planned, all: readonly Planned[]) => readonly string[];

/** A line for each problem. */
export function checkPlanned(all: readonly Planned[]): readonly string[] {
  return all.flatMap((resource) =>
    [...(CHECKS[resource.type] ?? []), accepted, sameRegion]
      .flatMap((check) => check(resource, all))
      .map((problem) => `${resource.address}: ${problem}`),
  );
}

const CHECKS: Readonly<Record<string, readonly Check[]>> = {
  google_cloudfunctions2_function: [
    ({ values }) =>
      unless(
        at(values, 'service_config', 'ingress_settings') === 'ALLOW_INTERNAL_ONLY',
        'it must not be reached from outside',
      ),
    subscribed,
    noSecrets,
    wakes,
    delays,
    orchestrates,
  ],
  google_cloud_run_v2_service: [
    ({ values }) =>
      unless(
        at(values, 'template', 'containers', 'resources', 'cpu_idle') === true,
        'cpu_idle must be true, or idle instances are paid for',
      ),
  ],
  google_app_engine_standard_app_version: [
    ({ values }, all) => [
      ...unless(values['noop_on_destroy'] === true, 'noop_on_destroy must be true, or there is no way back'),
      ...unless(
        all.some(
          ({ type, values: other }) =>
            type === 'google_app_engine_service_split_traffic' && other['service'] === values['service'],
        ),
        'a new version gets no calls without google_app_engine_service_split_traffic',
      ),
    ],
  ],
  google_storage_bucket_object: [
    ({ values }) =>
      unless(
        /[0-9a-f]{32}/.test(text(values['name'])),
        'without a hash in its name a change is not deployed',
      ),
  ],
  google_project_service: [
    ({ values }) =>
      unless(values['disable_on_destroy'] === false, 'disable_on_destroy must be false: others may use it'),
  ],
  google_firestore_database: [
    ({ values }) => [
      ...unless(
        values['deletion_policy'] === 'DELETE',
        'deletion_policy must be DELETE, or its name stays taken',
      ),
      ...unless(values['type'] === 'FIRESTORE_NATIVE', 'it must be in Native mode'),
    ],
  ],
  google_cloud_scheduler_job: [
    ({ values }, all) => {
      const uri = text(at(values, 'http_target', 'uri'));
      const of = functions(all).find((one) => uri === `${uriOf(one)}/sweep`);
      const limit = Number.parseInt(text(values['attempt_deadline']), 10);
      const audience = at(values, 'http_target', 'oidc_token', 'audience');
      return [
        ...unless(of !== undefined, `${uri} is the sweep of no function`),
        ...unless(of === undefined || audience === uriOf(of), 'the audience must be the function’s URL'),
        ...unless(
          of === undefined || limit > seconds(of, 'HANDLER_TIMEOUT'),
          'attempt_deadline ends before the sweep',
        ),
      ];
    },
  ],
  google_eventarc_trigger: [
    ({ values }, all) => {
      const filters = Object.fromEntries(
        listOf(values['matching_criteria'])
          .map(objectOf)
          .map(({ attribute, value }) => [textOf(attribute), textOf(value)]),
      );
      const service = text(at(values, 'destination', 'cloud_run_service', 'service'));
      const of = functions(all).find((one) => one.values['name'] === service);
      const environment = of === undefined ? {} : environmentOf(of);
      return [
        ...unless(
          environment['OUTBOX'] === 'on' || at(of?.values, 'build_config', 'entry_point') === 'saga',
          `${service} is no function with an outbox`,
        ),
        ...unless(
          filters['database'] === environment['FIRESTORE_DATABASE'] &&
            filters['document'] === `${environment['COLLECTION_PREFIX']}-outbox-rows/{row}`,
          'it is not notified of the rows that the function relays',
        ),
        ...unless(
          at(values, 'destination', 'cloud_run_service', 'path') === '/outbox' &&
            values['event_data_content_type'] === 'application/protobuf',
          'the function does not take these events',
        ),
      ];
    },
  ],
  google_pubsub_subscription_iam_member: [agent],
  google_pubsub_topic_iam_member: [agent],
  google_service_account_iam_member: [agent],
  google_project_iam_member: [
    ({ values }, all) => {
      const wide = ['roles/artifactregistry.writer', 'roles/storage.objectViewer'];
      if (wide.includes(text(values['role']))) {
        const of = text(at(values, 'condition', 'expression'));
        const isNamed = of
          .split(' || ')
          .every((part) => /^resource\.(name\.(starts|ends)With\("[^"]+"\)|type != "[^"]+")$/.test(part));
        return unless(
          isNamed && of.includes('resource.name.'),
          `${text(values['role'])} is for all of the project`,
        );
      }
      if (values['role'] !== 'roles/datastore.user') return [];
      const databases = all
        .filter((one) => values['member'] === `serviceAccount:${accountOf(one)}`)
        .map((one) => environmentOf(one)['FIRESTORE_DATABASE']);
      const expression = text(at(values, 'condition', 'expression'));
      const expected = databases.map(
        (name) => `resource.name == "projects/${text(values['project'])}/databases/${name}"`,
      );
      return unless(
        expected.includes(expression),
        `the condition is not for the account’s database: ${expression}`,
      );
    },
  ],
  google_monitoring_alert_policy: [
    ({ values }) => {
      const metric = objectOf(
        at(values, 'conditions', 'condition_threshold') ?? at(values, 'conditions', 'condition_absent'),
      );
      const log = at(values, 'conditions', 'condition_matched_log', 'filter');
      if (log === undefined) {
        return checkMetricFilter(
          text(metric['filter']),
          text(at(metric, 'aggregations', 'per_series_aligner')),
        );
      }
      const limit = at(values, 'alert_strategy', 'notification_rate_limit', 'period');
      return unless(limit !== undefined, 'an alert on lines of the log needs a notification_rate_limit');
    },
  ],
  google_monitoring_dashboard: [
    ({ values }) => checkDashboard(JSON.parse(text(values['dashboard_json'])) as Json),
  ],
};

/** A role may go to an account of the plan or to Pub/Sub's own, and to no other. */
function agent({ values }: Planned, all: readonly Planned[]): readonly string[] {
  const member = text(values['member']);
  const known = [
    `serviceAccount:service-${PROJECT_NUMBER}@gcp-sa-pubsub.iam.gserviceaccount.com`,
    ...all.filter(({ type }) => type === 'google_service_account').map((one) => text(one.values['member'])),
  ];
  return unless(known.includes(member), `${member} is not known`);
}

function accepted({ type, values }: Planned): readonly string[] {
  return Object.entries(ACCEPTED).flatMap(([path, known]) => {
    const [of = '', ...names] = path.split('.');
    if (of !== type) return [];
    const value = listOf(at(values, ...names)).map(textOf);
    return value
      .filter((one) => !known.includes(one))
      .map((one) => `${names.join('.')}: ${one} is not accepted`);
  });
}

/** A queue, a function or a job in another region would be deployed, and called across. */
function sameRegion({ type, values }: Planned, all: readonly Planned[]): readonly string[] {
  const here = text(functions(all)[0]?.values['location']);
  const where =
    type === 'google_redis_instance' || type === 'google_cloud_scheduler_job'
      ? values['region']
      : values['location'];
  if (typeof where !== 'string' || type.startsWith('google_storage_bucket')) return [];
  return unless(where === here, `it is in ${where}, and the functions in ${here}`);
}
