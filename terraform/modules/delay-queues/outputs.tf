output "queues" {
  description = "The queues, by the keys of the variable."
  value       = google_cloud_tasks_queue.queues
}

output "ids" {
  description = "Their full names by the same keys, as the modules guarantee and republisher take them."
  value = {
    for key, queue in google_cloud_tasks_queue.queues :
    key => "projects/${var.project_id}/locations/${queue.location}/queues/${queue.name}"
  }
}
