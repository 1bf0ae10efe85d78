# The database, and how the toolkit's collections are indexed in it: nothing but the fields that are queried, because
# every index entry is paid for with each write, and an ascending time in an index is a hot spot: `pendingAt` is a map with
# a field for each shard, which inherit its index, and `sweep` and `wake` are texts that begin with one. No query needs a
# composite index. What has an expiry has a TTL policy; what is work has none.

locals {
  database = var.create_database ? google_firestore_database.database[0].name : var.database

  # By the suffix of the collection's name: the order of the fields that are queried, and the one with a TTL policy.
  collections = {
    claims         = { indexed = {}, ttl = "expiresAt" }
    counters       = { indexed = {}, ttl = null }
    order-streams  = { indexed = { readyAt = "ASCENDING", waitingSince = "ASCENDING", "blocked.at" = "ASCENDING" }, ttl = null }
    order-held     = { indexed = { number = "ASCENDING" }, ttl = null }
    outbox-rows    = { indexed = { pendingAt = "ASCENDING", place = "ASCENDING", failedAt = "DESCENDING" }, ttl = "expiresAt" }
    outbox-streams = { indexed = { blockedAt = "DESCENDING" }, ttl = null }
    payload        = { indexed = { expiresAt = "ASCENDING" }, ttl = "expiresAt" }
    payload-chunks = { indexed = { expiresAt = "ASCENDING", unfinishedAt = "ASCENDING" }, ttl = "expiresAt" }
    saga-steps     = { indexed = {}, ttl = "expiresAt" }
    saga-traces    = { indexed = { openSince = "ASCENDING" }, ttl = "expiresAt" }
    sagas          = { indexed = { wake = "ASCENDING", byState = "ASCENDING" }, ttl = "expiresAt" }
    schedules      = { indexed = { sweep = "ASCENDING", byKey = "ASCENDING", byDueTime = "ASCENDING" }, ttl = "expiresAt" }
  }

  # "*" is every field that is not named.
  fields = merge([
    for suffix, collection in local.collections : {
      for field in setunion(["*"], keys(collection.indexed), collection.ttl == null ? [] : [collection.ttl]) :
      "${suffix}.${field}" => {
        collection = "${var.collection_prefix}-${suffix}"
        field      = field
        order      = lookup(collection.indexed, field, null)
        is_ttl     = collection.ttl == field
      }
    }
  ]...)
}

resource "google_firestore_database" "database" {
  count = var.create_database ? 1 : 0

  project                           = var.project_id
  name                              = var.database
  location_id                       = var.location
  type                              = "FIRESTORE_NATIVE"
  concurrency_mode                  = "PESSIMISTIC"
  delete_protection_state           = var.delete_protection ? "DELETE_PROTECTION_ENABLED" : "DELETE_PROTECTION_DISABLED"
  point_in_time_recovery_enablement = var.point_in_time_recovery ? "POINT_IN_TIME_RECOVERY_ENABLED" : "POINT_IN_TIME_RECOVERY_DISABLED"
  # The provider's default would leave the database behind, and the next apply would find its name taken.
  deletion_policy = "DELETE"

  dynamic "cmek_config" {
    for_each = var.kms_key == null ? [] : [var.kms_key]

    content {
      kms_key_name = cmek_config.value
    }
  }
}

resource "google_firestore_field" "fields" {
  for_each = local.fields

  project    = var.project_id
  database   = local.database
  collection = each.value.collection
  field      = each.value.field

  # Empty: no index at all.
  index_config {
    dynamic "indexes" {
      for_each = each.value.order == null ? [] : [each.value.order]

      content {
        order       = indexes.value
        query_scope = "COLLECTION"
      }
    }
  }

  dynamic "ttl_config" {
    for_each = each.value.is_ttl ? [true] : []

    content {}
  }

  # Where documents are there already, each is looked at: longer than the provider's 20 minutes.
  timeouts {
    create = "120m"
    update = "120m"
    delete = "120m"
  }
}
