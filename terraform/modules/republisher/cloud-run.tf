# --- on Cloud Run: the queue's calls carry a token, which Cloud Run checks for the right to call and the republisher
# for its audience and account

locals {
  is_cloud_run = var.cloud_run != null
  # Known before the service is: the service gets its own URL as a variable.
  url = local.is_cloud_run ? "https://${var.name}-${var.project_number}.${var.cloud_run.region}.run.app" : null
}

resource "google_service_account" "caller" {
  count = local.is_cloud_run ? 1 : 0

  project      = var.project_id
  account_id   = "${var.name}-caller"
  display_name = "Cloud Tasks calls the republisher as this account"
}

# It makes the next task of a long delay.
resource "google_service_account_iam_member" "caller" {
  count = local.is_cloud_run ? 1 : 0

  service_account_id = google_service_account.caller[0].name
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.runtime.member
}

resource "google_cloud_run_v2_service" "service" {
  count = local.is_cloud_run ? 1 : 0

  project             = var.project_id
  location            = var.cloud_run.region
  name                = var.name
  labels              = var.labels
  ingress             = "INGRESS_TRAFFIC_INTERNAL_ONLY"
  custom_audiences    = [local.url]
  deletion_protection = var.deletion_protection

  template {
    service_account                  = google_service_account.runtime.email
    max_instance_request_concurrency = var.cloud_run.concurrency
    timeout                          = "120s"

    scaling {
      min_instance_count = 0
      max_instance_count = var.cloud_run.max_instances
    }

    containers {
      image = var.cloud_run.image

      resources {
        # Unsaid it would be false where limits are set, and idle instances be paid for.
        cpu_idle = true

        limits = {
          cpu    = "1"
          memory = var.cloud_run.memory
        }
      }

      dynamic "env" {
        for_each = merge(local.environment, {
          # App Engine sets it by itself.
          GOOGLE_CLOUD_PROJECT = var.project_id
          OIDC_AUDIENCE        = local.url
          OIDC_SERVICE_ACCOUNT = google_service_account.caller[0].email
        })

        content {
          name  = env.key
          value = env.value
        }
      }
    }
  }

  # Tasks may be waiting for it.
  depends_on = [
    google_project_iam_member.firestore,
    google_pubsub_topic_iam_member.targets,
    google_pubsub_topic_iam_member.dead_letters,
    google_cloud_tasks_queue_iam_member.enqueuer,
    google_service_account_iam_member.caller,
  ]
}

resource "google_cloud_run_v2_service_iam_member" "caller" {
  count = local.is_cloud_run ? 1 : 0

  project  = var.project_id
  location = var.cloud_run.region
  name     = google_cloud_run_v2_service.service[0].name
  role     = "roles/run.invoker"
  member   = google_service_account.caller[0].member
}
