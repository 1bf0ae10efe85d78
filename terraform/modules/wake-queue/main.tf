# A queue for tasks that wake streams whose next message has failed. Unlike the queues of delayed messages it deletes a
# task after few attempts: a lost wake-up costs only time, because the sweep finds the same stream. Several functions may share it.

resource "google_cloud_tasks_queue" "queue" {
  project  = var.project_id
  location = var.location
  name     = "${var.name}${var.name_suffix}"

  rate_limits {
    max_dispatches_per_second = var.max_dispatches_per_second
    max_concurrent_dispatches = var.max_concurrent_dispatches
  }

  retry_config {
    max_attempts  = 5
    min_backoff   = "1s"
    max_backoff   = "10s"
    max_doublings = 3
  }
}
