output "queues" {
  description = "The queues, by the keys of the variable."
  value       = google_cloud_tasks_queue.queues
}

output "ids" {
  description = "Full names of the queues that messages are sent to, by the same keys, as the modules guarantee and republisher take them."
  value = {
    for key, queue in google_cloud_tasks_queue.queues :
    key => "projects/${var.project_id}/locations/${queue.location}/queues/${queue.name}" if contains(keys(var.queues), key)
  }
}

output "draining_ids" {
  description = "Full names of the queues that drain, as the modules republisher and monitoring take them."
  value = {
    for key, queue in google_cloud_tasks_queue.queues :
    key => "projects/${var.project_id}/locations/${queue.location}/queues/${queue.name}" if contains(keys(var.draining_queues), key)
  }
}
