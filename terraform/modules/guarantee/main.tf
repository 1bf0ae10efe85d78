# One function with all that is its own: two accounts, a push subscription with a deadline and a dead-letter topic, and
# rights on exactly the topics, queues, database and secrets that it uses. An event trigger is not used, because its
# subscription could be given neither a deadline nor a dead-letter topic.

module "policy" {
  source = "../policy"

  name          = var.name
  function      = var.function
  source_topic  = var.source_topic
  target_topic  = var.target_topic
  has_delay     = var.delay != null
  saga          = var.saga
  has_redis     = var.redis != null
  has_wake      = var.wake_queue != null
  has_outbox    = local.has_outbox
  limits        = var.limits
  service       = var.service
  dedup         = var.dedup
  order         = var.order
  counter_scope = var.counter_scope
  outbox_shards = var.outbox == null ? null : var.outbox.shards
}

locals {
  names  = module.policy.names
  limits = module.policy.limits
  size   = module.policy.service

  is_redis = var.redis != null
  is_saga  = var.function == "saga"
  # What an orchestrator sends are rows of its commits: without the outbox a crash would lose them.
  has_outbox     = var.outbox != null || local.is_saga
  uses_firestore = contains(["fifo", "pipeline"], var.function) || (var.function == "dedup" && !local.is_redis) || local.keeps_delays || local.has_outbox
  keeps_delays   = var.delay == null ? false : var.delay.ledger != "off" || var.delay.payloads
  pubsub_agent   = "serviceAccount:service-${var.project_number}@gcp-sa-pubsub.iam.gserviceaccount.com"
  # The sweep publishes to them what outboxes and inbox left behind; the target has its grant anyway. An orchestrator's
  # commands go to the topics of its steps, and its timers to its own.
  outbox_topics = setsubtract(
    setunion(
      var.outbox == null ? [] : var.outbox.topics,
      local.has_outbox && contains(["fifo", "pipeline", "saga"], var.function) ? [var.source_topic] : [],
      var.saga == null ? [] : var.saga.topics,
    ),
    compact([var.target_topic]),
  )
  # Known before the function is, unlike its own attribute: the function gets its own URL as a variable.
  own_url       = "https://${local.names.function}-${var.project_number}.${var.region}.run.app"
  redis_secrets = var.redis == null ? {} : { for key, secret in { url = var.redis.url_secret, ca = var.redis.ca_secret } : key => secret if secret != null }

  # Known before anything is created, unlike a URL; and without try(), which makes unknown what a part of is unknown.
  republisher   = var.delay == null ? null : var.delay.republisher
  to_app_engine = var.delay == null ? false : var.delay.republisher.app_engine_service != null
  to_url        = var.delay == null ? false : var.delay.republisher.app_engine_service == null

  environment = merge(
    {
      GOOGLE_CLOUD_PROJECT = var.project_id
      DEAD_LETTER_TOPIC    = google_pubsub_topic.dead_letters.name
      SOURCE_SUBSCRIPTION  = local.names.subscription
      CONSUMER             = var.name
      # Cloud Functions sets it anyway; unsaid, every plan would show a difference.
      LOG_EXECUTION_ID = "true"
    },
    module.policy.environment,
    var.saga == null ? {} : {
      SAGA_TOPIC  = var.source_topic
      SAGA_MODULE = var.saga.module
    },
    local.is_saga ? {} : {
      TARGET_TOPIC = var.target_topic
    },
    var.log_level == "info" ? {} : { LOG_LEVEL = var.log_level },
    var.check_windows ? {} : { CHECK_WINDOWS = "off" },
    var.strict_attributes ? { STRICT_ATTRIBUTES = "on" } : {},
    local.uses_firestore ? {
      FIRESTORE_DATABASE = var.firestore.database
      COLLECTION_PREFIX  = var.firestore.collection_prefix
    } : {},
    var.function == "pipeline" ? { SOURCE_TOPIC = var.source_topic } : {},
    local.is_redis ? { DEDUP_STORE = "redis" } : {},
    # Read by Node as it starts: the certificates of Memorystore are signed by an authority of its own.
    contains(keys(local.redis_secrets), "ca") ? { NODE_EXTRA_CA_CERTS = "/etc/redis/ca.pem" } : {},
    var.delay == null ? {} : {
      DELAY_QUEUES   = join(",", sort(values(var.delay.queues)))
      DELAY_LEDGER   = var.delay.ledger
      DELAY_PAYLOADS = var.delay.payloads ? "on" : "off"
    },
    var.wake_queue == null ? {} : {
      WAKE_QUEUE           = var.wake_queue
      WAKE_URL             = local.own_url
      WAKE_SERVICE_ACCOUNT = google_service_account.push.email
    },
    local.to_app_engine ? { REPUBLISHER_SERVICE = local.republisher.app_engine_service } : {},
    local.to_url ? {
      REPUBLISHER_URL             = local.republisher.url
      REPUBLISHER_SERVICE_ACCOUNT = local.republisher.caller.email
    } : {},
    var.environment,
  )
}

resource "google_service_account" "runtime" {
  project      = var.project_id
  account_id   = local.names.runtime_account
  display_name = "Runs the function ${var.name}"
}

resource "google_service_account" "push" {
  project      = var.project_id
  account_id   = local.names.push_account
  display_name = "Pub/Sub calls the function ${var.name} as this account"
}

# --- the function

resource "google_storage_bucket_object" "source" {
  bucket = var.bundle.bucket
  # A new name for new contents: what has the same name is not deployed again.
  name   = "${var.name}/functions-${filemd5(var.bundle.zip)}.zip"
  source = var.bundle.zip
}

resource "google_cloudfunctions2_function" "function" {
  project     = var.project_id
  location    = var.region
  name        = local.names.function
  description = local.is_saga ? "saga: ${var.source_topic}" : "${var.function}: ${var.source_topic} to ${var.target_topic}"
  labels      = var.labels

  build_config {
    runtime         = var.runtime
    entry_point     = var.function
    service_account = var.build_service_account
    worker_pool     = var.worker_pool

    source {
      storage_source {
        bucket = google_storage_bucket_object.source.bucket
        object = google_storage_bucket_object.source.name
      }
    }
  }

  service_config {
    available_cpu                    = tostring(local.size.cpu)
    available_memory                 = local.size.memory
    timeout_seconds                  = local.limits.function_timeout_seconds
    max_instance_request_concurrency = local.size.concurrency
    min_instance_count               = local.size.min_instances
    max_instance_count               = local.size.max_instances
    service_account_email            = google_service_account.runtime.email
    ingress_settings                 = var.ingress
    all_traffic_on_latest_revision   = true
    environment_variables            = local.environment
    direct_vpc_egress                = var.network == null ? null : var.network.all_traffic ? "VPC_EGRESS_ALL_TRAFFIC" : "VPC_EGRESS_PRIVATE_RANGES_ONLY"

    dynamic "direct_vpc_network_interface" {
      for_each = var.network == null ? [] : [var.network]

      content {
        network    = direct_vpc_network_interface.value.network
        subnetwork = direct_vpc_network_interface.value.subnetwork
      }
    }

    dynamic "secret_environment_variables" {
      for_each = var.redis == null ? [] : [var.redis.url_secret]

      content {
        key        = "REDIS_URL"
        project_id = var.project_id
        secret     = secret_environment_variables.value
        version    = "latest"
      }
    }

    dynamic "secret_volumes" {
      for_each = contains(keys(local.redis_secrets), "ca") ? [local.redis_secrets["ca"]] : []

      content {
        mount_path = "/etc/redis"
        project_id = var.project_id
        secret     = secret_volumes.value

        versions {
          version = "latest"
          path    = "ca.pem"
        }
      }
    }
  }

  # It reads secrets as it starts, and may be called as soon as it is there.
  depends_on = [
    google_secret_manager_secret_iam_member.redis,
    google_project_iam_member.firestore,
    google_pubsub_topic_iam_member.target,
    google_pubsub_topic_iam_member.dead_letters,
    google_pubsub_topic_iam_member.outbox,
    google_cloud_tasks_queue_iam_member.enqueuer,
    google_cloud_tasks_queue_iam_member.wake,
    google_project_iam_member.app_engine,
    google_service_account_iam_member.caller,
    google_service_account_iam_member.wake,
  ]
}

# --- what the function may do

resource "google_pubsub_topic_iam_member" "target" {
  count = local.is_saga ? 0 : 1

  project = var.project_id
  topic   = var.target_topic
  role    = "roles/pubsub.publisher"
  member  = google_service_account.runtime.member
}

resource "google_pubsub_topic_iam_member" "dead_letters" {
  project = var.project_id
  topic   = google_pubsub_topic.dead_letters.name
  role    = "roles/pubsub.publisher"
  member  = google_service_account.runtime.member
}

resource "google_pubsub_topic_iam_member" "outbox" {
  for_each = local.outbox_topics

  project = var.project_id
  topic   = each.value
  role    = "roles/pubsub.publisher"
  member  = google_service_account.runtime.member
}

# It compares the subscription's limits with its own when it starts.
resource "google_pubsub_subscription_iam_member" "viewer" {
  project      = var.project_id
  subscription = google_pubsub_subscription.push.name
  role         = "roles/pubsub.viewer"
  member       = google_service_account.runtime.member
}

# Firestore has no policy of its own: the condition narrows the grant to the database.
resource "google_project_iam_member" "firestore" {
  count = local.uses_firestore ? 1 : 0

  project = var.project_id
  role    = "roles/datastore.user"
  member  = google_service_account.runtime.member

  condition {
    title      = "${var.name}-database"
    expression = "resource.name == \"projects/${var.project_id}/databases/${var.firestore.database}\""
  }
}

resource "google_secret_manager_secret_iam_member" "redis" {
  for_each = local.redis_secrets

  project   = var.project_id
  secret_id = each.value
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.runtime.member
}

resource "google_cloud_tasks_queue_iam_member" "enqueuer" {
  for_each = var.delay == null ? {} : var.delay.queues

  project  = var.project_id
  location = split("/", each.value)[3]
  name     = split("/", each.value)[5]
  role     = "roles/cloudtasks.enqueuer"
  member   = google_service_account.runtime.member
}

# An account that may look at the app may make a task for it. There is no smaller thing to grant this on.
resource "google_project_iam_member" "app_engine" {
  count = local.to_app_engine ? 1 : 0

  project = var.project_id
  role    = local.republisher.app_engine_role
  member  = google_service_account.runtime.member
}

# An account that may act as the token's account may make a task with that token.
resource "google_service_account_iam_member" "caller" {
  count = local.to_url ? 1 : 0

  service_account_id = local.republisher.caller.id
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.runtime.member
}

# A wake-up is a task that calls the function itself, as the account that Pub/Sub calls it as.
resource "google_cloud_tasks_queue_iam_member" "wake" {
  count = var.wake_queue == null ? 0 : 1

  project  = var.project_id
  location = split("/", var.wake_queue)[3]
  name     = split("/", var.wake_queue)[5]
  role     = "roles/cloudtasks.enqueuer"
  member   = google_service_account.runtime.member
}

resource "google_service_account_iam_member" "wake" {
  count = var.wake_queue == null ? 0 : 1

  service_account_id = google_service_account.push.name
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.runtime.member
}

# --- the subscription

resource "google_pubsub_topic" "dead_letters" {
  project = var.project_id
  name    = local.names.dead_letter_topic
  labels  = var.labels

  kms_key_name = var.kms_key

  dynamic "message_storage_policy" {
    for_each = length(var.storage_regions) == 0 ? [] : [var.storage_regions]

    content {
      allowed_persistence_regions = message_storage_policy.value
    }
  }
}

# Without a subscription the topic would keep nothing.
resource "google_pubsub_subscription" "dead_letters" {
  project                    = var.project_id
  name                       = local.names.dead_letter_subscription
  topic                      = google_pubsub_topic.dead_letters.id
  labels                     = var.labels
  ack_deadline_seconds       = 60
  message_retention_duration = "2678400s"

  expiration_policy {
    ttl = ""
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "google_pubsub_subscription" "push" {
  project                    = var.project_id
  name                       = local.names.subscription
  topic                      = "projects/${var.project_id}/topics/${var.source_topic}"
  labels                     = var.labels
  ack_deadline_seconds       = local.limits.ack_deadline_seconds
  message_retention_duration = module.policy.retry.message_retention
  filter                     = var.filter

  push_config {
    push_endpoint = google_cloudfunctions2_function.function.service_config[0].uri

    oidc_token {
      service_account_email = google_service_account.push.email
      audience              = google_cloudfunctions2_function.function.service_config[0].uri
    }
  }

  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead_letters.id
    max_delivery_attempts = local.limits.max_delivery_attempts
  }

  retry_policy {
    minimum_backoff = module.policy.retry.minimum_backoff
    maximum_backoff = module.policy.retry.maximum_backoff
  }

  expiration_policy {
    ttl = ""
  }

  # What waits in it would be lost: another name, source or filter is another subscription (docs/deploy.md, "Changes
  # that could lose messages").
  lifecycle {
    prevent_destroy = true
  }

  # A delivery that is refused for want of a right counts as an attempt.
  depends_on = [
    google_cloud_run_service_iam_member.push,
    google_service_account_iam_member.pubsub_agent,
  ]
}

resource "google_cloud_run_service_iam_member" "push" {
  project  = var.project_id
  location = var.region
  service  = google_cloudfunctions2_function.function.name
  role     = "roles/run.invoker"
  member   = google_service_account.push.member

  lifecycle {
    # A function that is made anew under its name has lost the roles that were granted on the old one.
    replace_triggered_by = [google_cloudfunctions2_function.function.id]
  }
}

# --- what Pub/Sub's own account must be allowed to do

resource "google_pubsub_topic_iam_member" "pubsub_agent" {
  project = var.project_id
  topic   = google_pubsub_topic.dead_letters.name
  role    = "roles/pubsub.publisher"
  member  = local.pubsub_agent
}

resource "google_pubsub_subscription_iam_member" "pubsub_agent" {
  project      = var.project_id
  subscription = google_pubsub_subscription.push.name
  role         = "roles/pubsub.subscriber"
  member       = local.pubsub_agent
}

resource "google_service_account_iam_member" "pubsub_agent" {
  count = var.grant_token_creator ? 1 : 0

  service_account_id = google_service_account.push.name
  role               = "roles/iam.serviceAccountTokenCreator"
  member             = local.pubsub_agent

  # Google makes the account with the first topic of a project.
  depends_on = [google_pubsub_topic.dead_letters]
}
