output "dead_letters" {
  description = "The subscriptions that keep dead letters."
  value = [
    module.later.dead_letter_subscription.name,
    module.republisher.dead_letter_subscription.name,
  ]
}
