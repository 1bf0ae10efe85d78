# What one project needs once: its APIs, a bucket for the packed sources, and an account that builds, with no more
# rights than building takes. In a project that has all this, leave the module out.

locals {
  services = setunion(var.services, [
    "artifactregistry.googleapis.com",
    "cloudbuild.googleapis.com",
    "cloudfunctions.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "cloudscheduler.googleapis.com",
    "cloudtasks.googleapis.com",
    "firestore.googleapis.com",
    "iam.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "pubsub.googleapis.com",
    "run.googleapis.com",
    "storage.googleapis.com",
  ])
}

resource "google_project_service" "services" {
  for_each = local.services

  project = var.project_id
  service = each.value
  # Others in the project may use them.
  disable_on_destroy = false
}

resource "google_storage_bucket" "sources" {
  project                     = var.project_id
  name                        = coalesce(var.bucket_name, "${var.project_id}-pubsub-guarantees-sources")
  location                    = var.location
  labels                      = var.labels
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  # What is in it can be packed again from the source.
  force_destroy = true

  depends_on = [google_project_service.services]
}

resource "google_service_account" "build" {
  project      = var.project_id
  account_id   = var.build_account_id
  display_name = "Builds the functions of pubsub-guarantees"

  depends_on = [google_project_service.services]
}

resource "google_storage_bucket_iam_member" "build" {
  bucket = google_storage_bucket.sources.name
  role   = "roles/storage.objectViewer"
  member = google_service_account.build.member
}

# The builder keeps its images in a repository, and the uploaded source in a bucket, that Cloud Functions and Cloud Run
# make by themselves, by these names: a condition narrows the grants to them.
locals {
  build_conditions = {
    "roles/artifactregistry.writer" = join(" || ", [
      "resource.type != \"artifactregistry.googleapis.com/Repository\"",
      "resource.name.endsWith(\"/repositories/gcf-artifacts\")",
      "resource.name.endsWith(\"/repositories/cloud-run-source-deploy\")",
    ])
    "roles/storage.objectViewer" = join(" || ", [
      "resource.name.startsWith(\"projects/_/buckets/gcf-v2-sources-\")",
      "resource.name.startsWith(\"projects/_/buckets/run-sources-\")",
    ])
  }
}

resource "google_project_iam_member" "build" {
  for_each = toset(["roles/artifactregistry.writer", "roles/logging.logWriter", "roles/storage.objectViewer"])

  project = var.project_id
  role    = each.value
  member  = google_service_account.build.member

  dynamic "condition" {
    for_each = [for role, expression in local.build_conditions : expression if role == each.value]

    content {
      title      = "builds"
      expression = condition.value
    }
  }
}
