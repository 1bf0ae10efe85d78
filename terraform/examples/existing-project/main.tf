# Into a project that already holds topics, a bucket and a Firestore database, and has no App Engine: only what the
# delay itself needs is created, and nothing that is there is changed but for rights on the two topics.

provider "google" {
  project = var.project_id
  region  = var.region
}

module "store" {
  source = "../../modules/store-firestore"

  project_id      = var.project_id
  create_database = false
  database        = "(default)"
}

module "queues" {
  source = "../../modules/delay-queues"

  project_id = var.project_id
  location   = var.region
}

module "republisher" {
  source = "../../modules/republisher"

  project_id     = var.project_id
  labels         = var.labels
  project_number = var.project_number
  allowed_topics = [var.target_topic]
  queues         = module.queues.ids
  firestore      = module.store.firestore
  cloud_run = {
    region = var.region
    image  = var.republisher_image
  }
}

module "later" {
  source = "../../modules/guarantee"

  project_id            = var.project_id
  labels                = var.labels
  project_number        = var.project_number
  region                = var.region
  name                  = "later"
  function              = "delay"
  source_topic          = var.source_topic
  target_topic          = var.target_topic
  firestore             = module.store.firestore
  build_service_account = var.build_service_account
  bundle = {
    bucket = var.bucket
    zip    = "${var.packages}/functions.zip"
  }
  delay = {
    queues      = module.queues.ids
    republisher = module.republisher.target
  }
}

module "sweep" {
  source = "../../modules/sweep"

  project_id = var.project_id
  region     = var.region
  function   = module.later.function
}
