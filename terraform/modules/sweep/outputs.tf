output "job" {
  description = "The job."
  value       = google_cloud_scheduler_job.sweep
}
