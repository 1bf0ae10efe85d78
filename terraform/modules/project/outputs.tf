output "bucket" {
  description = "The bucket of sources."
  value       = google_storage_bucket.sources
}

output "build_account" {
  description = "The account that builds, as `build_service_account` of the module guarantee takes it. It has its roles once this is known."
  value       = google_service_account.build.name

  depends_on = [google_project_iam_member.build, google_storage_bucket_iam_member.build]
}

output "services" {
  description = "The enabled APIs. What refers to them waits for them."
  value       = [for service in google_project_service.services : service.service]
}
