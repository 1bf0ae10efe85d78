# One topic whose messages arrive once: from an empty project.

provider "google" {
  project = var.project_id
  region  = var.region
}

module "project" {
  source = "../../modules/project"

  project_id = var.project_id
  labels     = var.labels
  location   = var.region
}

module "store" {
  source = "../../modules/store-firestore"

  project_id = var.project_id
  kms_key    = var.kms_key
  location   = var.region

  depends_on = [module.project]
}

resource "google_pubsub_topic" "topics" {
  for_each = toset(["orders", "orders-unique"])

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

module "orders_once" {
  source = "../../modules/guarantee"

  project_id            = var.project_id
  kms_key               = var.kms_key
  storage_regions       = var.storage_regions
  labels                = var.labels
  project_number        = var.project_number
  region                = var.region
  name                  = "orders-once"
  function              = "dedup"
  source_topic          = google_pubsub_topic.topics["orders"].name
  target_topic          = google_pubsub_topic.topics["orders-unique"].name
  firestore             = module.store.firestore
  build_service_account = module.project.build_account
  bundle = {
    bucket = module.project.bucket.name
    zip    = "${var.packages}/functions.zip"
  }

  depends_on = [module.project]
}
