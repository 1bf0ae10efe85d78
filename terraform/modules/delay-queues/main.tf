# The queues that hold delayed messages. They try without limit: after a last attempt Cloud Tasks deletes a task, and
# with it the message.
#
# A queue that is deleted takes its tasks with it, and its name cannot be used again for days. So Terraform refuses to
# delete one: it drains first, under the same address (docs/deploy.md, "Changes that could lose messages").

resource "google_cloud_tasks_queue" "queues" {
  for_each = merge(var.queues, var.draining_queues)

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

  lifecycle {
    prevent_destroy = true
  }
}
