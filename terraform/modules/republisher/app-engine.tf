# --- on App Engine standard: the queue's calls are recognised by headers that the platform strips from outside

locals {
  creates_app = var.app_engine == null ? false : var.app_engine.create_application
  version     = local.is_app_engine ? "v${substr(sha256(jsonencode([filemd5(var.app_engine.zip), local.environment, local.of_version])), 0, 12)}" : null
  # Whether the app is made here is nothing of the version: that may be left out later.
  of_version = var.app_engine == null ? null : {
    for key, value in var.app_engine : key => value if !contains(["create_application", "location", "internal_only"], key)
  }
}

resource "google_app_engine_application" "app" {
  count = local.creates_app ? 1 : 0

  project     = var.project_id
  location_id = var.app_engine.location
}

resource "google_storage_bucket_object" "source" {
  count = local.is_app_engine ? 1 : 0

  bucket = var.app_engine.bucket
  name   = "${var.name}/republisher-${filemd5(var.app_engine.zip)}.zip"
  source = var.app_engine.zip
}

# App Engine builds a version as the account that runs it.
resource "google_storage_bucket_iam_member" "build" {
  count = local.is_app_engine ? 1 : 0

  bucket = var.app_engine.bucket
  role   = "roles/storage.objectViewer"
  member = google_service_account.runtime.member
}

# Its staging bucket and its repository of images, which App Engine makes by itself, and no others.
locals {
  build_conditions = {
    "roles/artifactregistry.writer" = join(" || ", [
      "resource.type != \"artifactregistry.googleapis.com/Repository\"",
      "resource.name.endsWith(\"/repositories/gae-standard\")",
    ])
    "roles/storage.objectViewer" = "resource.name.startsWith(\"projects/_/buckets/staging.\")"
  }
}

resource "google_project_iam_member" "build" {
  for_each = local.is_app_engine ? toset(["roles/artifactregistry.writer", "roles/logging.logWriter", "roles/storage.objectViewer"]) : []

  project = var.project_id
  role    = each.value
  member  = google_service_account.runtime.member

  dynamic "condition" {
    for_each = [for role, expression in local.build_conditions : expression if role == each.value]

    content {
      title      = "${var.name}-builds"
      expression = condition.value
    }
  }
}

# An account that makes a task for App Engine must be allowed to look at the app. The smallest role of Google's for that also
# shows its services, versions and instances.
resource "google_project_iam_custom_role" "tasks" {
  count = local.is_app_engine ? 1 : 0

  project     = var.project_id
  role_id     = "${replace(var.name, "-", "_")}_tasks"
  title       = "Makes tasks for the ${var.name}"
  permissions = ["appengine.applications.get"]
}

resource "google_project_iam_member" "app_engine" {
  count = local.is_app_engine ? 1 : 0

  project = var.project_id
  role    = google_project_iam_custom_role.tasks[0].name
  member  = google_service_account.runtime.member
}

# The queues call it from inside Google's network (https://cloud.google.com/appengine/docs/standard/application-security).
resource "google_app_engine_service_network_settings" "ingress" {
  count = try(var.app_engine.internal_only, false) ? 1 : 0

  project = var.project_id
  service = google_app_engine_standard_app_version.version[0].service

  network_settings {
    ingress_traffic_allowed = "INGRESS_TRAFFIC_ALLOWED_INTERNAL_ONLY"
  }
}

resource "google_app_engine_standard_app_version" "version" {
  count = local.is_app_engine ? 1 : 0

  project         = var.project_id
  service         = var.app_engine.service
  version_id      = local.version
  runtime         = var.app_engine.runtime
  instance_class  = var.app_engine.instance_class
  service_account = google_service_account.runtime.email
  env_variables   = local.environment
  # Kept when a newer one takes over, so that going back is one command; without calls it costs nothing.
  noop_on_destroy = true

  deployment {
    zip {
      source_url = "https://storage.googleapis.com/${google_storage_bucket_object.source[0].bucket}/${google_storage_bucket_object.source[0].name}"
    }
  }

  entrypoint {
    shell = "node index.js"
  }

  inbound_services = ["INBOUND_SERVICE_WARMUP"]

  automatic_scaling {
    max_concurrent_requests = 80

    standard_scheduler_settings {
      min_instances = 0
      max_instances = var.app_engine.max_instances
    }
  }

  lifecycle {
    create_before_destroy = true
  }

  depends_on = [
    google_app_engine_application.app,
    google_project_iam_member.build,
    google_storage_bucket_iam_member.build,
    # Tasks may be waiting for it.
    google_project_iam_member.app_engine,
    google_project_iam_member.firestore,
    google_pubsub_topic_iam_member.targets,
    google_pubsub_topic_iam_member.dead_letters,
    google_cloud_tasks_queue_iam_member.enqueuer,
  ]
}

# A further version gets no calls by itself.
resource "google_app_engine_service_split_traffic" "traffic" {
  count = local.is_app_engine ? 1 : 0

  project         = var.project_id
  service         = google_app_engine_standard_app_version.version[0].service
  migrate_traffic = false

  split {
    allocations = { (google_app_engine_standard_app_version.version[0].version_id) = 1 }
  }
}
