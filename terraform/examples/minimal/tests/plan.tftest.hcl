mock_provider "google" {}

variables {
  project_number = "123456789012"
  project_id     = "demo-project"
}

run "is_planned" {
  command = plan

  assert {
    condition     = module.orders_once.subscription.dead_letter_policy[0].max_delivery_attempts == 20
    error_message = "the subscription has no dead-letter policy"
  }

  assert {
    condition     = module.orders_once.function_resource.service_config[0].timeout_seconds < module.orders_once.subscription.ack_deadline_seconds
    error_message = "the ack deadline is not above the function's timeout"
  }
}
