output "trigger" {
  description = "The trigger."
  value       = google_eventarc_trigger.outbox
}
