# What a delayed message's task calls when its time has come: it may publish to the topics on its list, and to its own
# dead-letter topic, and nowhere else.

locals {
  is_app_engine = var.app_engine != null

  # As for functions: what fits the memory (modules/policy).
  memory_bytes = local.is_app_engine ? {
    F1 = 384000000, F2 = 768000000, F4 = 1536000000, F4_1G = 3072000000
    }[var.app_engine.instance_class] : (
    tonumber(regex("^[0-9]+", var.cloud_run.memory)) * { Mi = 1048576, Gi = 1073741824 }[regex("[A-Za-z]+$", var.cloud_run.memory)]
  )
  environment = merge({
    ALLOWED_TOPICS     = join(",", sort(tolist(var.allowed_topics)))
    DEAD_LETTER_TOPIC  = google_pubsub_topic.dead_letters.name
    DELAY_QUEUES       = join(",", sort(values(var.queues)))
    FIRESTORE_DATABASE = var.firestore.database
    COLLECTION_PREFIX  = var.firestore.collection_prefix

    MAX_BYTES_IN_FLIGHT = tostring(floor((local.memory_bytes - 167772160) / 5))
    }, length(var.draining_queues) == 0 ? {} : {
    DRAINING_QUEUES = join(",", sort(values(var.draining_queues)))
  }, var.environment)
}

resource "google_service_account" "runtime" {
  project      = var.project_id
  account_id   = "${var.name}-run"
  display_name = "Runs the republisher"
}

# --- what it may do

resource "google_pubsub_topic_iam_member" "targets" {
  for_each = var.allowed_topics

  project = var.project_id
  topic   = each.value
  role    = "roles/pubsub.publisher"
  member  = google_service_account.runtime.member
}

resource "google_pubsub_topic_iam_member" "dead_letters" {
  project = var.project_id
  topic   = google_pubsub_topic.dead_letters.name
  role    = "roles/pubsub.publisher"
  member  = google_service_account.runtime.member
}

# Beyond 30 days a message travels in several tasks.
resource "google_cloud_tasks_queue_iam_member" "enqueuer" {
  for_each = var.queues

  project  = var.project_id
  location = split("/", each.value)[3]
  name     = split("/", each.value)[5]
  role     = "roles/cloudtasks.enqueuer"
  member   = google_service_account.runtime.member
}

# Firestore has no policy of its own: the condition narrows the grant to the database.
resource "google_project_iam_member" "firestore" {
  project = var.project_id
  role    = "roles/datastore.user"
  member  = google_service_account.runtime.member

  condition {
    title      = "${var.name}-database"
    expression = "resource.name == \"projects/${var.project_id}/databases/${var.firestore.database}\""
  }
}

# --- its dead letters

resource "google_pubsub_topic" "dead_letters" {
  project = var.project_id
  name    = "${var.name}-dead-letters"
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
  name                       = "${var.name}-dead-letters"
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
