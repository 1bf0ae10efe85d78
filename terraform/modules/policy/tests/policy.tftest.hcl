variables {
  name         = "orders-once"
  function     = "dedup"
  source_topic = "orders"
  target_topic = "orders-unique"
}

run "the_defaults_fit_each_other" {
  command = plan

  assert {
    condition     = output.environment.HANDLER_TIMEOUT == "60s" && output.environment.DEDUP_RETENTION == "691200s"
    error_message = "the environment does not say what the limits say"
  }

  assert {
    condition     = alltrue([for name in values(output.names) : length(name) <= 40])
    error_message = "a name is too long"
  }
}

run "a_function_gets_only_the_variables_it_knows" {
  command = plan
  variables {
    function = "fifo"
  }

  assert {
    condition     = !contains(keys(output.environment), "DEDUP_LEASE") && output.environment.ORDER_LEASE == "60s"
    error_message = "fifo has the variables of another function"
  }
}

run "refuses_a_function_timeout_below_the_handlers" {
  command = plan
  variables {
    limits = { handler_timeout_seconds = 60, function_timeout_seconds = 60 }
  }
  expect_failures = [var.limits]
}

run "refuses_an_ack_deadline_below_the_functions_timeout" {
  command = plan
  variables {
    limits = { function_timeout_seconds = 120, ack_deadline_seconds = 100 }
  }
  expect_failures = [var.limits]
}

run "refuses_attempts_that_a_lease_uses_up" {
  command = plan
  variables {
    limits = { max_delivery_attempts = 5, dedup_lease_seconds = 60 }
  }
  expect_failures = [var.limits]
}

run "refuses_attempts_that_an_outage_uses_up" {
  command = plan
  variables {
    limits = { max_delivery_attempts = 5, minimum_backoff_seconds = 1, dedup_lease_seconds = 1 }
  }
  expect_failures = [var.limits]
}

run "refuses_records_that_end_before_the_messages" {
  command = plan
  variables {
    limits = { dedup_retention_seconds = 86400 }
  }
  expect_failures = [var.limits]
}

run "refuses_a_concurrency_that_needs_more_cpu" {
  command = plan
  variables {
    service = { cpu = 0.5 }
  }
  expect_failures = [var.service]
}

run "refuses_a_topic_that_feeds_itself" {
  command = plan
  variables {
    target_topic = "orders"
  }
  expect_failures = [var.target_topic]
}

run "refuses_a_delay_without_queues" {
  command = plan
  variables {
    function = "delay"
  }
  expect_failures = [var.has_delay]
}

run "refuses_redis_for_order" {
  command = plan
  variables {
    function  = "fifo"
    has_redis = true
  }
  expect_failures = [var.has_redis]
}

run "refuses_a_name_that_makes_too_long_ones" {
  command = plan
  variables {
    name = "orders-in-the-morning-once"
  }
  expect_failures = [var.name]
}

run "refuses_an_unknown_function" {
  command = plan
  variables {
    function = "dedupe"
  }
  expect_failures = [var.function]
}

run "what_is_set_reaches_the_function_and_nothing_else_does" {
  command = plan
  variables {
    function      = "pipeline"
    has_delay     = true
    has_wake      = true
    has_outbox    = true
    has_redis     = true
    counter_scope = "shop"
    outbox_shards = 32
    dedup         = { on_conflict = "ack", redis_prefix = "ps:" }
    order         = { start = "counter", on_poison = "skip", gap_timeout_seconds = 120, on_unknown_stale = "ack", scope = "consumer" }
  }

  assert {
    condition = (
      output.environment.COUNTER_SCOPE == "shop" && output.environment.OUTBOX == "on"
      && output.environment.OUTBOX_SHARDS == "32"
      && output.environment.DEDUP_ON_CONFLICT == "ack" && output.environment.REDIS_PREFIX == "ps:"
      && output.environment.ORDER_START == "counter" && output.environment.ORDER_ON_POISON == "skip"
      && output.environment.ORDER_GAP_TIMEOUT == "120s"
      && output.environment.ORDER_ON_UNKNOWN_STALE == "ack" && output.environment.ORDER_SCOPE == "consumer"
    )
    error_message = "a setting is lost"
  }

  assert {
    condition     = length(setintersection(keys(output.environment), ["DEDUP_ON_STORE_UNAVAILABLE", "ORDER_MAX_ATTEMPTS", "ORDER_ON_GAP"])) == 0
    error_message = "what is not set is said"
  }
}

run "refuses_order_for_a_function_without_streams" {
  command = plan
  variables {
    order = { on_poison = "skip" }
  }
  expect_failures = [var.order]
}

run "refuses_a_policy_for_poison_that_is_none" {
  command = plan
  variables {
    function = "fifo"
    order    = { on_poison = "drop" }
  }
  expect_failures = [var.order]
}

run "refuses_an_answer_to_unknown_numbers_that_is_none" {
  command = plan
  variables {
    function = "fifo"
    order    = { on_unknown_stale = "drop" }
  }
  expect_failures = [var.order]
}

run "refuses_a_scope_of_streams_that_is_none" {
  command = plan
  variables {
    function = "fifo"
    order    = { scope = "topic" }
  }
  expect_failures = [var.order]
}

run "refuses_a_start_that_is_none" {
  command = plan
  variables {
    function = "fifo"
    order    = { start = "0" }
  }
  expect_failures = [var.order]
}

run "refuses_attempts_of_a_stream_that_the_subscription_ends" {
  command = plan
  variables {
    function = "fifo"
    order    = { max_attempts = 20 }
  }
  expect_failures = [var.order]
}

run "refuses_dedup_for_a_function_without_claims" {
  command = plan
  variables {
    function = "fifo"
    dedup    = { on_conflict = "ack" }
  }
  expect_failures = [var.dedup]
}

run "refuses_a_policy_for_conflicts_that_is_none" {
  command = plan
  variables {
    dedup = { on_conflict = "drop" }
  }
  expect_failures = [var.dedup]
}

run "refuses_a_redis_prefix_without_redis" {
  command = plan
  variables {
    dedup = { redis_prefix = "ps:" }
  }
  expect_failures = [var.dedup]
}

run "refuses_wake_ups_without_streams" {
  command = plan
  variables {
    has_wake = true
  }
  expect_failures = [var.has_wake]
}

run "refuses_a_scope_of_counters_that_no_function_reads" {
  command = plan
  variables {
    counter_scope = "shop"
  }
  expect_failures = [var.counter_scope]
}

run "refuses_shards_of_an_outbox_that_no_function_relays" {
  command = plan
  variables {
    outbox_shards = 32
  }
  expect_failures = [var.outbox_shards]
}

run "refuses_more_shards_than_a_relay_asks" {
  command = plan
  variables {
    has_outbox    = true
    outbox_shards = 257
  }
  expect_failures = [var.outbox_shards]
}

run "refuses_a_function_timeout_that_leaves_no_time_for_a_wake_up" {
  command = plan
  variables {
    function = "fifo"
    has_wake = true
    limits   = { handler_timeout_seconds = 60, function_timeout_seconds = 62 }
  }
  expect_failures = [var.has_wake]
}

run "bytes_in_flight_follow_the_memory" {
  command = plan

  assert {
    condition     = output.environment.MAX_BYTES_IN_FLIGHT == "73819750"
    error_message = "512 MiB must have room for (512 - 160) / 5 MiB"
  }
}

run "bytes_in_flight_of_more_memory" {
  command = plan
  variables {
    service = { memory = "2Gi" }
  }

  assert {
    condition     = output.environment.MAX_BYTES_IN_FLIGHT == "395942297"
    error_message = "2 GiB must have room for (2048 - 160) / 5 MiB"
  }
}

run "refuses_more_bytes_in_flight_than_the_memory_holds" {
  command = plan
  variables {
    service = { max_bytes_in_flight = 200000000 }
  }
  expect_failures = [var.service]
}

run "refuses_memory_that_one_message_does_not_fit" {
  command = plan
  variables {
    service = { memory = "128Mi" }
  }
  expect_failures = [var.service]
}

run "an_orchestrator_has_the_variables_of_its_inbox_and_no_target" {
  command = plan
  variables {
    function     = "saga"
    target_topic = null
    has_delay    = true
    has_outbox   = true
    saga         = { topics = ["stock"] }
    dedup        = { on_conflict = "ack" }
  }

  assert {
    condition     = output.environment.DEDUP_LEASE == "30s" && output.environment.OUTBOX == "on" && output.environment.DEDUP_ON_CONFLICT == "ack"
    error_message = "saga lacks a variable"
  }
}

run "refuses_an_orchestrator_without_definitions_and_queues" {
  command = plan
  variables {
    function     = "saga"
    target_topic = null
  }
  expect_failures = [var.saga, var.has_delay]
}

run "refuses_definitions_for_another_function" {
  command = plan
  variables {
    saga = { topics = ["stock"] }
  }
  expect_failures = [var.saga]
}

run "refuses_an_orchestrator_with_a_target" {
  command = plan
  variables {
    function  = "saga"
    has_delay = true
    saga      = { topics = ["stock"] }
  }
  expect_failures = [var.target_topic]
}

run "refuses_another_function_without_a_target" {
  command = plan
  variables {
    target_topic = null
  }
  expect_failures = [var.target_topic]
}

run "refuses_an_orchestrator_whose_commands_come_to_itself" {
  command = plan
  variables {
    function     = "saga"
    target_topic = null
    has_delay    = true
    saga         = { topics = ["stock", "orders"] }
  }
  expect_failures = [var.saga]
}

run "refuses_definitions_outside_of_the_package" {
  command = plan
  variables {
    function     = "saga"
    target_topic = null
    has_delay    = true
    saga         = { topics = ["stock"], module = "../sagas.js" }
  }
  expect_failures = [var.saga]
}

run "refuses_an_orchestrator_that_would_process_without_a_record" {
  command = plan
  variables {
    function     = "saga"
    target_topic = null
    has_delay    = true
    saga         = { topics = ["stock"] }
    dedup        = { on_conflict = "process" }
  }
  expect_failures = [var.dedup]
}
