/**
 * The facts of what runs: functions, the republisher, jobs, alerts and the dashboard.
 */
import { type JsonObject, listOf, objectOf, textOf } from '../module.ts';
import { environmentText, type Reader } from './facts.ts';
import { PLANNED_REDIS, reachOfPlan } from './redis.ts';
import { at, text, texts } from './values.ts';

export const SERVICES: Readonly<Record<string, Reader>> = {
  ...PLANNED_REDIS,
  google_cloudfunctions2_function: (values) => [
    [
      `function ${text(values['name'])}`,
      {
        runtime: text(at(values, 'build_config', 'runtime')),
        entry: text(at(values, 'build_config', 'entry_point')),
        buildAccount: text(at(values, 'build_config', 'service_account')),
        account: text(at(values, 'service_config', 'service_account_email')),
        cpu: text(at(values, 'service_config', 'available_cpu')),
        memory: text(at(values, 'service_config', 'available_memory')),
        timeout: text(at(values, 'service_config', 'timeout_seconds')),
        concurrency: text(at(values, 'service_config', 'max_instance_request_concurrency')),
        instances: texts(
          at(values, 'service_config', 'min_instance_count'),
          at(values, 'service_config', 'max_instance_count'),
        ),
        isInternal: String(at(values, 'service_config', 'ingress_settings') === 'ALLOW_INTERNAL_ONLY'),
        environment: environmentText(
          at(values, 'service_config', 'environment_variables') as Record<string, string>,
        ),
        reach: reachOfPlan(objectOf(at(values, 'service_config'))),
      },
    ],
  ],
  google_app_engine_standard_app_version: (values) => [
    [
      `app version of ${text(values['service'])}`,
      {
        account: text(values['service_account']),
        environment: environmentText(values['env_variables'] as Record<string, string>),
      },
    ],
  ],
  google_cloud_run_v2_service: (values) => {
    const container = objectOf(at(values, 'template', 'containers'));
    const env = (container['env'] ?? []) as readonly { name: string; value: string }[];
    return [
      [
        `run service ${text(values['name'])}`,
        {
          account: text(at(values, 'template', 'service_account')),
          concurrency: text(at(values, 'template', 'max_instance_request_concurrency')),
          timeout: text(at(values, 'template', 'timeout')),
          cpu: text(objectOf(at(container, 'resources', 'limits'))['cpu']),
          memory: text(objectOf(at(container, 'resources', 'limits'))['memory']),
          instances: texts(
            at(values, 'template', 'scaling', 'min_instance_count'),
            at(values, 'template', 'scaling', 'max_instance_count'),
          ),
          isInternal: String(values['ingress'] === 'INGRESS_TRAFFIC_INTERNAL_ONLY'),
          audiences: text(values['custom_audiences']),
          environment: environmentText(Object.fromEntries(env.map(({ name, value }) => [name, value]))),
        },
      ],
    ];
  },
  google_cloud_scheduler_job: (values) => [
    [
      `job ${text(values['name'])}`,
      {
        schedule: text(values['schedule']),
        zone: text(values['time_zone']),
        deadline: text(values['attempt_deadline']),
        retries: text(at(values, 'retry_config', 'retry_count')),
        call: `${text(at(values, 'http_target', 'http_method'))} ${text(at(values, 'http_target', 'uri'))}`,
        account: text(at(values, 'http_target', 'oidc_token', 'service_account_email')),
        audience: text(at(values, 'http_target', 'oidc_token', 'audience')),
      },
    ],
  ],
  google_eventarc_trigger: (values) => {
    const criteria = listOf(values['matching_criteria']).map(objectOf);
    const filters = criteria.map(({ attribute, value }) => `${textOf(attribute)}=${textOf(value)}`);
    return [
      [
        `trigger ${text(values['name'])}`,
        {
          location: text(values['location']),
          filters: filters.toSorted().join(' '),
          content: text(values['event_data_content_type']),
          account: text(values['service_account']),
          service: text(at(values, 'destination', 'cloud_run_service', 'service')),
          region: text(at(values, 'destination', 'cloud_run_service', 'region')),
          path: text(at(values, 'destination', 'cloud_run_service', 'path')),
        },
      ],
    ];
  },
  google_monitoring_alert_policy: (values) => {
    const absent = at(values, 'conditions', 'condition_absent');
    const condition = objectOf(absent ?? at(values, 'conditions', 'condition_threshold'));
    const filter = at(values, 'conditions', 'condition_matched_log', 'filter');
    if (filter !== undefined) {
      const said = {
        condition: text(at(values, 'conditions', 'display_name')),
        filter: text(filter),
        severity: text(values['severity']),
        closes: text(at(values, 'alert_strategy', 'auto_close')),
        every: text(at(values, 'alert_strategy', 'notification_rate_limit', 'period')),
      };
      return [[`alert ${text(values['display_name'])}`, said]];
    }
    return [
      [
        `alert ${text(values['display_name'])}`,
        {
          condition: text(at(values, 'conditions', 'display_name')),
          filter: text(condition['filter']),
          above: absent === undefined ? text(condition['threshold_value']) : 'absent',
          duration: text(condition['duration']),
          aligner: text(at(condition, 'aggregations', 'per_series_aligner')),
        },
      ],
    ];
  },
  google_monitoring_dashboard: (values) => [
    [`dashboard ${text((JSON.parse(text(values['dashboard_json'])) as JsonObject)['displayName'])}`, {}],
  ],
};
