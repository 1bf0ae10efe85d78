output "target" {
  description = "What the queue calls, as `delay.republisher` of the module guarantee takes it."
  value = {
    app_engine_service = local.is_app_engine ? var.app_engine.service : null
    app_engine_role    = one(google_project_iam_custom_role.tasks[*].name)
    url                = local.url
    caller             = local.is_cloud_run ? { id = google_service_account.caller[0].name, email = google_service_account.caller[0].email } : null
  }
}

output "service" {
  description = "Name of its service, as `republisher` of the module monitoring takes it."
  value = {
    app_engine = local.is_app_engine ? var.app_engine.service : null
    cloud_run  = one(google_cloud_run_v2_service.service[*].name)
  }
}

output "app_engine_version" {
  description = "The version on App Engine; null on Cloud Run."
  value       = one(google_app_engine_standard_app_version.version)
}

output "cloud_run_service" {
  description = "The service on Cloud Run; null on App Engine."
  value       = one(google_cloud_run_v2_service.service)
}

output "dead_letter_topic" {
  description = "The dead-letter topic."
  value       = google_pubsub_topic.dead_letters
}

output "dead_letter_subscription" {
  description = "The subscription that keeps dead letters, for 31 days."
  value       = google_pubsub_subscription.dead_letters
}

output "runtime_account" {
  description = "The account that the republisher runs as."
  value       = google_service_account.runtime
}
