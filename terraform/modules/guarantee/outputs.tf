output "function" {
  description = "Name and URL of the function, and how long it works at one request, as the module sweep takes it."
  value = {
    name                    = google_cloudfunctions2_function.function.name
    uri                     = google_cloudfunctions2_function.function.service_config[0].uri
    handler_timeout_seconds = local.limits.handler_timeout_seconds
  }
}

output "function_resource" {
  description = "The function."
  value       = google_cloudfunctions2_function.function
}

output "subscription" {
  description = "The push subscription."
  value       = google_pubsub_subscription.push
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
  description = "The account that the function runs as."
  value       = google_service_account.runtime
}
