/**
 * The facts of a plan. A planned resource of a type without a reader is an error: it would be compared with nothing.
 */
import type { JsonObject } from '../module.ts';
import type { Planned } from '../plans.ts';
import type { Fact, Facts, Reader } from './facts.ts';
import { SERVICES } from './of-planned-services.ts';
import { at, last, text, texts } from './values.ts';

/** What only one way needs, and why the other does without. */
const NOT_COMPARED = new Set([
  // Nothing outside of Terraform.
  'terraform_data',
  // gcloud uploads sources to a bucket of its own.
  'google_storage_bucket',
  'google_storage_bucket_object',
  'google_storage_bucket_iam_member',
  // Once in the life of a project, and not by a script: docs/deploy.md has the command.
  'google_app_engine_application',
  // Part of `gcloud app deploy --promote`.
  'google_app_engine_service_split_traffic',
]);

/** Throws for a resource of a type that is not known here: it would be compared with nothing. */
export function factsOfPlan(resources: readonly Planned[]): Facts {
  return new Map(resources.filter(({ type }) => !NOT_COMPARED.has(type)).flatMap(factOf));
}

function factOf({ type, values, address }: Planned): readonly Fact[] {
  const of = THINGS[type] ?? SERVICES[type];
  if (of === undefined)
    throw new Error(`${address}: resources of type ${type} are not compared with anything`);
  return of(values);
}

const grant = (on: string, values: JsonObject): readonly Fact[] => [
  [
    `grant on ${on}: ${text(values['role'])} to ${text(values['member'])}`,
    { condition: text(at(values, 'condition', 'expression')) },
  ],
];

const THINGS: Readonly<Record<string, Reader>> = {
  google_project_service: (values) => [[`service ${text(values['service'])}`, {}]],
  google_service_account: (values) => [
    [`account ${text(values['account_id'])}`, { name: text(values['display_name']) }],
  ],
  google_project_iam_custom_role: (values) => [
    [
      `role ${text(values['role_id'])}`,
      { title: text(values['title']), permissions: text(values['permissions']) },
    ],
  ],
  google_project_iam_member: (values) => grant('project', values),
  google_pubsub_topic_iam_member: (values) => grant(`topic ${last(values['topic'])}`, values),
  google_pubsub_subscription_iam_member: (values) =>
    grant(`subscription ${last(values['subscription'])}`, values),
  google_cloud_tasks_queue_iam_member: (values) => grant(`queue ${last(values['name'])}`, values),
  google_secret_manager_secret_iam_member: (values) => grant(`secret ${last(values['secret_id'])}`, values),
  google_service_account_iam_member: (values) =>
    grant(`account ${last(values['service_account_id'])}`, values),
  google_cloud_run_service_iam_member: (values) => grant(`run ${last(values['service'])}`, values),
  google_cloud_run_v2_service_iam_member: (values) => grant(`run ${last(values['name'])}`, values),
  google_pubsub_topic: (values) => [[`topic ${text(values['name'])}`, {}]],
  google_pubsub_subscription: (values) => [
    [
      `subscription ${text(values['name'])}`,
      {
        topic: last(values['topic']),
        ackDeadline: text(values['ack_deadline_seconds']),
        retention: text(values['message_retention_duration']),
        expires: at(values, 'expiration_policy', 'ttl') === '' ? 'never' : 'by itself',
        endpoint: text(at(values, 'push_config', 'push_endpoint')),
        account: text(at(values, 'push_config', 'oidc_token', 'service_account_email')),
        audience: text(at(values, 'push_config', 'oidc_token', 'audience')),
        deadLetters: last(at(values, 'dead_letter_policy', 'dead_letter_topic')),
        attempts: text(at(values, 'dead_letter_policy', 'max_delivery_attempts')),
        backoff: [
          at(values, 'retry_policy', 'minimum_backoff'),
          at(values, 'retry_policy', 'maximum_backoff'),
        ]
          .map(text)
          .join('-'),
      },
    ],
  ],
  google_firestore_database: (values) => [
    [
      `database ${text(values['name'])}`,
      {
        location: text(values['location_id']),
        isProtected: String(values['delete_protection_state'] === 'DELETE_PROTECTION_ENABLED'),
      },
    ],
  ],
  google_firestore_field: (values) => {
    const field = `${text(values['database'])}/${text(values['collection'])}.${text(values['field'])}`;
    const order = at(values, 'index_config', 'indexes', 'order');
    const scope = at(values, 'index_config', 'indexes', 'query_scope');
    const indexed = order === undefined ? 'no' : `${text(order)} ${text(scope)}`.toLowerCase();
    return [
      [`index ${field}`, { indexed }],
      ...('ttl_config' in values ? [[`expiry ${field}`, {}] as const] : []),
    ];
  },
  google_cloud_tasks_queue: (values) => [
    [
      `queue ${text(values['name'])}`,
      {
        location: text(values['location']),
        rate: text(at(values, 'rate_limits', 'max_dispatches_per_second')),
        concurrent: text(at(values, 'rate_limits', 'max_concurrent_dispatches')),
        attempts: text(at(values, 'retry_config', 'max_attempts')),
        backoff: texts(at(values, 'retry_config', 'min_backoff'), at(values, 'retry_config', 'max_backoff')),
        doublings: text(at(values, 'retry_config', 'max_doublings')),
        log: text(at(values, 'stackdriver_logging_config', 'sampling_ratio')),
      },
    ],
  ],
};
