output "publish_to" {
  description = "Publish here."
  value       = google_pubsub_topic.topics["orders"].id
}

output "subscribe_to" {
  description = "Subscribe here."
  value       = google_pubsub_topic.topics["orders-unique"].id
}
