output "names" {
  description = "The name of everything that belongs to the function."
  value = {
    function                 = var.name
    subscription             = "${var.name}-push"
    dead_letter_topic        = "${var.name}-dead-letters"
    dead_letter_subscription = "${var.name}-dead-letters"
    runtime_account          = "${var.name}-run"
    push_account             = "${var.name}-push"
  }
}

output "limits" {
  description = "The limits with their defaults."
  value       = var.limits
}

output "service" {
  description = "The size with its defaults."
  value       = var.service
}

output "environment" {
  description = "The function's environment variables that are about times and policies. What is not set is left to the function."
  value = merge(
    {
      HANDLER_TIMEOUT  = "${var.limits.handler_timeout_seconds}s"
      FUNCTION_TIMEOUT = "${var.limits.function_timeout_seconds}s"

      MAX_BYTES_IN_FLIGHT = tostring(local.bytes_in_flight)
    },
    contains(["dedup", "pipeline", "saga"], var.function) ? {
      DEDUP_LEASE     = "${var.limits.dedup_lease_seconds}s"
      DEDUP_RETENTION = "${var.limits.dedup_retention_seconds}s"
    } : {},
    contains(["fifo", "pipeline"], var.function) ? {
      ORDER_LEASE = "${var.limits.order_lease_seconds}s"
    } : {},
    var.has_outbox ? { OUTBOX = "on" } : {},
    {
      for name, value in {
        COUNTER_SCOPE              = var.counter_scope
        OUTBOX_SHARDS              = var.outbox_shards == null ? null : tostring(var.outbox_shards)
        DEDUP_ON_CONFLICT          = var.dedup.on_conflict
        DEDUP_ON_STORE_UNAVAILABLE = var.dedup.on_store_unavailable
        REDIS_PREFIX               = var.dedup.redis_prefix
        ORDER_START                = var.order.start
        ORDER_MAX_ATTEMPTS         = var.order.max_attempts == null ? null : tostring(var.order.max_attempts)
        ORDER_ON_POISON            = var.order.on_poison
        ORDER_ON_UNKNOWN_STALE     = var.order.on_unknown_stale
        ORDER_SCOPE                = var.order.scope
        ORDER_ON_GAP               = var.order.on_gap
        ORDER_GAP_TIMEOUT          = var.order.gap_timeout_seconds == null ? null : "${var.order.gap_timeout_seconds}s"
      } : name => value if value != null
    },
  )
}

output "retry" {
  description = "Backoffs and retention as Pub/Sub writes durations."
  value = {
    minimum_backoff   = "${var.limits.minimum_backoff_seconds}s"
    maximum_backoff   = "${var.limits.maximum_backoff_seconds}s"
    message_retention = "${var.limits.message_retention_seconds}s"
  }
}
