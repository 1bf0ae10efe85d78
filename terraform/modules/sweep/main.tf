# Cloud Scheduler asks a function every minute to sweep: to look for what is due and no delivery processes. The next
# sweep makes up for one that fails, so the job itself tries only once.

resource "google_service_account" "sweep" {
  project      = var.project_id
  account_id   = "${var.function.name}-sweep"
  display_name = "Calls the sweep of ${var.function.name}"
}

# Not known when the function is made anew: then its grants are gone, and this one has to be made again.
resource "terraform_data" "function" {
  input = var.function.uri
}

resource "google_cloud_run_service_iam_member" "sweep" {
  project  = var.project_id
  location = var.region
  service  = var.function.name
  role     = "roles/run.invoker"
  member   = google_service_account.sweep.member

  lifecycle {
    replace_triggered_by = [terraform_data.function]
  }
}

resource "google_cloud_scheduler_job" "sweep" {
  project          = var.project_id
  region           = var.region
  name             = "${var.function.name}-sweep"
  description      = "Sweeps ${var.function.name} for what is due and no delivery processes"
  schedule         = var.schedule
  time_zone        = "Etc/UTC"
  attempt_deadline = "${var.attempt_deadline_seconds}s"

  retry_config {
    retry_count = 0
  }

  http_target {
    http_method = "POST"
    uri         = "${var.function.uri}/sweep"

    oidc_token {
      service_account_email = google_service_account.sweep.email
      audience              = var.function.uri
    }
  }

  depends_on = [google_cloud_run_service_iam_member.sweep]
}
