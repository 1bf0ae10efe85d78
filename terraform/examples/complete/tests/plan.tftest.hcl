mock_provider "google" {}

variables {
  project_number     = "123456789012"
  project_id         = "demo-project"
  app_engine_service = "republisher"
}

run "is_planned" {
  command = plan

  assert {
    condition     = toset(keys(module.guarantees)) == toset(["orders-once", "reminders", "ledger-fifo", "payments-pipe"])
    error_message = "a function is missing"
  }

  assert {
    condition     = alltrue([for queue in module.queues.queues : queue.retry_config[0].max_attempts == -1])
    error_message = "a queue deletes tasks after some attempts"
  }

  assert {
    condition     = length(module.monitoring.alerts) == 25
    error_message = "an alert is missing"
  }
}
