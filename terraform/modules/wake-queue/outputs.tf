output "queue" {
  description = "The queue."
  value       = google_cloud_tasks_queue.queue
}

output "id" {
  description = "Its full name, as `wake_queue` of the module guarantee takes it."
  value       = "projects/${var.project_id}/locations/${google_cloud_tasks_queue.queue.location}/queues/${google_cloud_tasks_queue.queue.name}"
}
