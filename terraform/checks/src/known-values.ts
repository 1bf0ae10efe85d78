/**
 * What the schema does not know: the values that arguments accept, as far as the modules set them, and the platform's
 * metrics that alerts and the dashboard are about. From the provider's and Cloud Monitoring's documentation
 * (https://cloud.google.com/monitoring/api/metrics_gcp).
 */

/** By resource type and path of blocks. */
export const ACCEPTED: Readonly<Record<string, readonly string[]>> = {
  'google_app_engine_service_network_settings.network_settings.ingress_traffic_allowed': [
    'INGRESS_TRAFFIC_ALLOWED_ALL',
    'INGRESS_TRAFFIC_ALLOWED_INTERNAL_ONLY',
    'INGRESS_TRAFFIC_ALLOWED_INTERNAL_AND_LB',
  ],
  'google_app_engine_standard_app_version.inbound_services': [
    'INBOUND_SERVICE_MAIL',
    'INBOUND_SERVICE_WARMUP',
  ],
  'google_app_engine_standard_app_version.instance_class': ['F1', 'F2', 'F4', 'F4_1G'],
  'google_cloud_run_v2_service.ingress': [
    'INGRESS_TRAFFIC_ALL',
    'INGRESS_TRAFFIC_INTERNAL_ONLY',
    'INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER',
  ],
  'google_cloud_scheduler_job.http_target.http_method': ['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'PATCH'],
  'google_cloudfunctions2_function.service_config.direct_vpc_egress': [
    'VPC_EGRESS_ALL_TRAFFIC',
    'VPC_EGRESS_PRIVATE_RANGES_ONLY',
  ],
  'google_cloudfunctions2_function.service_config.ingress_settings': [
    'ALLOW_ALL',
    'ALLOW_INTERNAL_ONLY',
    'ALLOW_INTERNAL_AND_GCLB',
  ],
  'google_firestore_database.concurrency_mode': [
    'OPTIMISTIC',
    'PESSIMISTIC',
    'OPTIMISTIC_WITH_ENTITY_GROUPS',
  ],
  'google_firestore_database.delete_protection_state': [
    'DELETE_PROTECTION_ENABLED',
    'DELETE_PROTECTION_DISABLED',
  ],
  'google_firestore_database.deletion_policy': ['DELETE', 'ABANDON'],
  'google_firestore_database.point_in_time_recovery_enablement': [
    'POINT_IN_TIME_RECOVERY_ENABLED',
    'POINT_IN_TIME_RECOVERY_DISABLED',
  ],
  'google_firestore_database.type': ['FIRESTORE_NATIVE', 'DATASTORE_MODE'],
  'google_firestore_field.index_config.indexes.order': ['ASCENDING', 'DESCENDING'],
  'google_firestore_field.index_config.indexes.query_scope': [
    'COLLECTION',
    'COLLECTION_GROUP',
    'COLLECTION_RECURSIVE',
  ],
  'google_monitoring_alert_policy.combiner': ['AND', 'OR', 'AND_WITH_MATCHING_RESOURCE'],
  'google_monitoring_alert_policy.conditions.condition_threshold.comparison': [
    'COMPARISON_GT',
    'COMPARISON_LT',
  ],
  'google_monitoring_alert_policy.severity': ['CRITICAL', 'ERROR', 'WARNING'],
  'google_redis_instance.connect_mode': ['DIRECT_PEERING', 'PRIVATE_SERVICE_ACCESS'],
  'google_redis_instance.tier': ['BASIC', 'STANDARD_HA'],
  'google_redis_instance.transit_encryption_mode': ['SERVER_AUTHENTICATION', 'DISABLED'],
  'google_storage_bucket.public_access_prevention': ['inherited', 'enforced'],
};

type Metric = Readonly<{
  resource: 'pubsub_subscription' | 'cloud_tasks_queue' | 'cloud_run_revision' | 'cloud_scheduler_job';
  kind: 'GAUGE' | 'DELTA';
  value: 'INT64' | 'DISTRIBUTION';
}>;

export const METRICS: Readonly<Record<string, Metric>> = {
  'cloudtasks.googleapis.com/queue/depth': { resource: 'cloud_tasks_queue', kind: 'GAUGE', value: 'INT64' },
  'cloudtasks.googleapis.com/queue/task_attempt_count': {
    resource: 'cloud_tasks_queue',
    kind: 'DELTA',
    value: 'INT64',
  },
  'cloudtasks.googleapis.com/queue/task_attempt_delays': {
    resource: 'cloud_tasks_queue',
    kind: 'DELTA',
    value: 'DISTRIBUTION',
  },
  // Of every resource that writes lines; here the jobs alone are asked for.
  'logging.googleapis.com/log_entry_count': {
    resource: 'cloud_scheduler_job',
    kind: 'DELTA',
    value: 'INT64',
  },
  'pubsub.googleapis.com/subscription/num_undelivered_messages': {
    resource: 'pubsub_subscription',
    kind: 'GAUGE',
    value: 'INT64',
  },
  'pubsub.googleapis.com/subscription/oldest_unacked_message_age': {
    resource: 'pubsub_subscription',
    kind: 'GAUGE',
    value: 'INT64',
  },
  'run.googleapis.com/container/instance_count': {
    resource: 'cloud_run_revision',
    kind: 'GAUGE',
    value: 'INT64',
  },
  'run.googleapis.com/request_count': { resource: 'cloud_run_revision', kind: 'DELTA', value: 'INT64' },
  'run.googleapis.com/request_latencies': {
    resource: 'cloud_run_revision',
    kind: 'DELTA',
    value: 'DISTRIBUTION',
  },
};

/** Of the monitored resources (https://cloud.google.com/monitoring/api/resources). */
export const LABELS: Readonly<Record<Metric['resource'], readonly string[]>> = {
  pubsub_subscription: ['project_id', 'subscription_id'],
  cloud_tasks_queue: ['project_id', 'location', 'queue_id'],
  cloud_scheduler_job: ['project_id', 'location', 'job_id'],
  cloud_run_revision: ['project_id', 'location', 'service_name', 'revision_name', 'configuration_name'],
};

/** What may be done with a metric of this kind and value type before anything is added up. */
export const ALIGNERS: Readonly<Record<string, readonly string[]>> = {
  'GAUGE INT64': ['ALIGN_MAX', 'ALIGN_MEAN', 'ALIGN_MIN', 'ALIGN_SUM', 'ALIGN_NEXT_OLDER'],
  'DELTA INT64': ['ALIGN_DELTA', 'ALIGN_RATE', 'ALIGN_SUM', 'ALIGN_MAX'],
  'DELTA DISTRIBUTION': ['ALIGN_DELTA', 'ALIGN_PERCENTILE_99', 'ALIGN_PERCENTILE_95', 'ALIGN_PERCENTILE_50'],
};

/** Arguments that cannot be changed in place, of what holds messages or cannot be made again under its name. */
export const NOT_IN_PLACE: Readonly<Record<string, readonly string[]>> = {
  google_app_engine_application: ['project', 'location_id'],
  google_app_engine_standard_app_version: ['project', 'service', 'version_id'],
  google_cloud_tasks_queue: ['project', 'location', 'name'],
  google_firestore_database: ['project', 'name', 'location_id'],
  google_pubsub_subscription: ['project', 'name', 'topic', 'filter', 'enable_message_ordering'],
  google_pubsub_topic: ['project', 'name'],
  google_redis_instance: ['project', 'name', 'region', 'tier', 'connect_mode', 'transit_encryption_mode'],
  google_service_account: ['project', 'account_id'],
};
