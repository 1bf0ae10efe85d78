output "topics" {
  description = "Where to publish and where to subscribe, by function."
  value       = local.functions
}

output "dead_letters" {
  description = "The subscriptions that keep dead letters."
  value       = { for name, guarantee in module.guarantees : name => guarantee.dead_letter_subscription.name }
}
