# The queues that hold delayed messages. They try without limit: after a last attempt Cloud Tasks deletes a task, and
# with it the message.

resource "google_cloud_tasks_queue" "queues" {
  for_each = var.queues

  project  = var.project_id
  location = var.location
  name     = "${each.key}${var.name_suffix}"

  rate_limits {
    max_dispatches_per_second = each.value.max_dispatches_per_second
    max_concurrent_dispatches = each.value.max_concurrent_dispatches
  }

  retry_config {
    max_attempts  = -1
    min_backoff   = "${each.value.min_backoff_seconds}s"
    max_backoff   = "${each.value.max_backoff_seconds}s"
    max_doublings = each.value.max_doublings
  }

  stackdriver_logging_config {
    sampling_ratio = each.value.log_sampling_ratio
  }
}
