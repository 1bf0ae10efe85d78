# All there is: a function for each guarantee and one for all three, the republisher on App Engine, sweeps, alerts, and
# on request an orchestrator of sagas, Redis and relays of outboxes.

provider "google" {
  project = var.project_id
  region  = var.region
}

locals {
  functions = merge(
    {
      orders-once   = { function = "dedup", source = "orders", target = "orders-unique" }
      reminders     = { function = "delay", source = "reminders", target = "reminders-due" }
      ledger-fifo   = { function = "fifo", source = "ledger", target = "ledger-ordered" }
      payments-pipe = { function = "pipeline", source = "payments", target = "payments-ready" }
    },
    { for name, saga in local.sagas : name => { function = "saga", source = saga.topic, target = null } },
  )
  sagas = var.saga == null ? {} : { order-sagas = var.saga }
  topics = toset(concat(
    compact(flatten([for function in values(local.functions) : [function.source, function.target]])),
    flatten([for saga in values(local.sagas) : tolist(saga.topics)]),
  ))
  delay = {
    queues      = module.queues.ids
    republisher = module.republisher.target
  }
}

module "project" {
  source = "../../modules/project"

  project_id = var.project_id
  labels     = var.labels
  location   = var.region
  services = concat(
    ["appengine.googleapis.com"],
    var.redis_network == null ? [] : ["redis.googleapis.com", "secretmanager.googleapis.com"],
    length(var.outbox_triggers) == 0 ? [] : ["eventarc.googleapis.com", "eventarcpublishing.googleapis.com"],
  )
}

module "store" {
  source = "../../modules/store-firestore"

  project_id = var.project_id
  kms_key    = var.kms_key
  location   = var.region

  depends_on = [module.project]
}

module "redis" {
  source = "../../modules/store-redis"
  count  = var.redis_network == null ? 0 : 1

  project_id     = var.project_id
  kms_key        = var.kms_key
  secret_regions = var.kms_key == null ? [] : [var.region]
  labels         = var.labels
  region         = var.region
  network        = "projects/${var.project_id}/global/networks/${var.redis_network.network}"

  depends_on = [module.project]
}

module "queues" {
  source = "../../modules/delay-queues"

  project_id      = var.project_id
  location        = var.region
  queues          = { for id in var.queues : id => {} }
  draining_queues = { for id in var.draining_queues : id => {} }

  depends_on = [module.project]
}

module "wake_queue" {
  source = "../../modules/wake-queue"

  project_id = var.project_id
  location   = var.region

  depends_on = [module.project]
}

resource "google_pubsub_topic" "topics" {
  for_each = local.topics

  project = var.project_id
  labels  = var.labels
  name    = each.value

  kms_key_name = var.kms_key

  dynamic "message_storage_policy" {
    for_each = length(var.storage_regions) == 0 ? [] : [var.storage_regions]

    content {
      allowed_persistence_regions = message_storage_policy.value
    }
  }

  depends_on = [module.project]
}

module "republisher" {
  source = "../../modules/republisher"

  project_id      = var.project_id
  kms_key         = var.kms_key
  storage_regions = var.storage_regions
  labels          = var.labels
  project_number  = var.project_number
  # Where delayed messages come out, and an orchestrator's timers come back.
  allowed_topics = concat(
    [google_pubsub_topic.topics["reminders-due"].name, google_pubsub_topic.topics["payments"].name],
    [for saga in values(local.sagas) : google_pubsub_topic.topics[saga.topic].name],
  )
  queues          = module.queues.ids
  draining_queues = module.queues.draining_ids
  firestore       = module.store.firestore
  app_engine = {
    bucket             = module.project.bucket.name
    zip                = "${var.packages}/republisher.zip"
    service            = var.app_engine_service
    create_application = var.app_engine_location != null
    location           = var.app_engine_location
  }

  depends_on = [module.project]
}

module "guarantees" {
  source   = "../../modules/guarantee"
  for_each = local.functions

  project_id            = var.project_id
  kms_key               = var.kms_key
  storage_regions       = var.storage_regions
  worker_pool           = var.worker_pool
  labels                = var.labels
  project_number        = var.project_number
  region                = var.region
  name                  = each.key
  function              = each.value.function
  source_topic          = google_pubsub_topic.topics[each.value.source].name
  target_topic          = each.value.target == null ? null : google_pubsub_topic.topics[each.value.target].name
  firestore             = module.store.firestore
  redis                 = each.value.function == "dedup" ? one(module.redis[*].secrets) : null
  network               = each.value.function == "dedup" ? var.redis_network : null
  delay                 = contains(["delay", "pipeline", "saga"], each.value.function) ? local.delay : null
  wake_queue            = contains(["fifo", "pipeline"], each.value.function) ? module.wake_queue.id : null
  build_service_account = module.project.build_account
  # Its own topics are created before any account may publish to them.
  saga = each.value.function != "saga" ? null : {
    module = local.sagas[each.key].module
    topics = [for topic in local.sagas[each.key].topics : google_pubsub_topic.topics[topic].name]
  }
  outbox = contains(keys(var.outbox), each.key) ? {
    topics = [for topic in var.outbox[each.key] : try(google_pubsub_topic.topics[topic].name, topic)]
  } : null
  bundle = {
    bucket = module.project.bucket.name
    zip    = "${var.packages}/functions.zip"
  }

  depends_on = [module.project]
}

# dedup without an outbox has nothing to sweep.
module "sweeps" {
  source   = "../../modules/sweep"
  for_each = { for name, function in local.functions : name => function if function.function != "dedup" || contains(keys(var.outbox), name) }

  project_id = var.project_id
  region     = var.region
  function   = module.guarantees[each.key].function
}

module "outbox_triggers" {
  source   = "../../modules/outbox-trigger"
  for_each = var.outbox_triggers

  project_id = var.project_id
  labels     = var.labels
  region     = var.region
  location   = var.region
  function   = module.guarantees[each.key].function
  firestore  = module.store.firestore

  depends_on = [module.project]
}

module "monitoring" {
  source = "../../modules/monitoring"

  project_id            = var.project_id
  labels                = var.labels
  queues                = merge(module.queues.ids, module.queues.draining_ids)
  notification_channels = var.notification_channels
  streams               = [for name, function in local.functions : name if contains(["fifo", "pipeline"], function.function)]
  outboxes              = setunion(keys(var.outbox), keys(local.sagas))
  sagas                 = keys(local.sagas)
  republisher           = module.republisher.service
  sweeps                = [for sweep in module.sweeps : sweep.job.name]
  functions             = { for name, guarantee in module.guarantees : name => { subscription = guarantee.subscription.name } }
  dead_letter_subscriptions = merge(
    { for name, guarantee in module.guarantees : name => guarantee.dead_letter_subscription.name },
    { republisher = module.republisher.dead_letter_subscription.name },
  )

  depends_on = [module.project]
}
