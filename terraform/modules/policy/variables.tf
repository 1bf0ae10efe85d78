variable "name" {
  description = "Name of the function and first part of every name that belongs to it: 3 to 20 lower-case letters, digits and hyphens."
  type        = string

  validation {
    # The longest name made from it is a service account's, of at most 30 characters.
    condition     = can(regex("^[a-z]([a-z0-9-]{1,18}[a-z0-9])$", var.name))
    error_message = "name must have 3 to 20 characters: lower-case letters, digits and hyphens, beginning with a letter and not ending with a hyphen."
  }
}

variable "function" {
  description = "The guarantee: dedup, delay, fifo or pipeline; or saga, the orchestrator of sagas."
  type        = string

  validation {
    condition     = contains(["dedup", "delay", "fifo", "pipeline", "saga"], var.function)
    error_message = "function must be dedup, delay, fifo, pipeline or saga."
  }
}

variable "source_topic" {
  description = "ID of the topic that the function's subscription is on."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$", var.source_topic))
    error_message = "source_topic must be the ID of a topic in this project (3 to 255 characters, beginning with a letter), not a full name."
  }
}

variable "target_topic" {
  description = "ID of the topic that messages are forwarded to; null for saga, whose steps name their topics."
  type        = string
  default     = null

  validation {
    condition     = var.function == "saga" || can(regex("^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$", var.target_topic))
    error_message = "target_topic must be the ID of a topic in this project (3 to 255 characters, beginning with a letter), not a full name."
  }

  validation {
    condition     = var.function != "saga" || var.target_topic == null
    error_message = "target_topic must be null for saga, whose steps name their topics: saga.topics."
  }

  validation {
    condition     = var.target_topic == null ? true : var.target_topic != var.source_topic
    error_message = "target_topic must be another topic than source_topic: a message that is published to where it came from comes round for ever."
  }

  validation {
    condition     = !contains(compact([var.source_topic, var.target_topic]), "${var.name}-dead-letters")
    error_message = "NAME-dead-letters is the name of the dead-letter topic: source_topic and target_topic must be others."
  }
}

variable "has_delay" {
  description = "Whether queues and a republisher are given."
  type        = bool
  default     = false

  validation {
    condition     = var.has_delay == contains(["delay", "pipeline", "saga"], var.function)
    error_message = "delay must be set for the functions delay, pipeline and saga, whose timers are delayed messages, and for no other."
  }
}

variable "saga" {
  description = "For saga: the file of the package whose default export is the list of definitions (`module`), and the IDs of the topics that their steps name (`topics`)."
  type = object({
    module = optional(string, "sagas.js")
    topics = set(string)
  })
  default = null

  validation {
    condition     = (var.saga != null) == (var.function == "saga")
    error_message = "saga must be set for the function saga, and for no other."
  }

  validation {
    condition     = var.saga == null ? true : can(regex("^[A-Za-z0-9_-][A-Za-z0-9._/-]*\\.m?js$", var.saga.module))
    error_message = "saga.module must be a file in the folder of the package, such as sagas.js."
  }

  validation {
    condition     = var.saga == null ? true : length(var.saga.topics) >= 1 && alltrue([for topic in var.saga.topics : can(regex("^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$", topic))])
    error_message = "saga.topics must be the IDs of topics in this project, at least one: those that the steps of the definitions name."
  }

  validation {
    condition     = var.saga == null ? true : length(setintersection(var.saga.topics, [var.source_topic, "${var.name}-dead-letters"])) == 0
    error_message = "saga.topics must be other topics than source_topic, the orchestrator's own, and NAME-dead-letters."
  }
}

variable "has_redis" {
  description = "Whether claims are kept in Redis."
  type        = bool
  default     = false

  validation {
    condition     = !var.has_redis || contains(["dedup", "pipeline"], var.function)
    error_message = "redis may be set for the functions dedup and pipeline only: order, schedules, payloads and sagas need Firestore."
  }
}

variable "limits" {
  description = "Times and limits, which must fit each other."
  type = object({
    handler_timeout_seconds   = optional(number, 60)
    function_timeout_seconds  = optional(number, 70)
    ack_deadline_seconds      = optional(number, 90)
    max_delivery_attempts     = optional(number, 20)
    minimum_backoff_seconds   = optional(number, 10)
    maximum_backoff_seconds   = optional(number, 600)
    message_retention_seconds = optional(number, 604800)
    dedup_lease_seconds       = optional(number, 30)
    dedup_retention_seconds   = optional(number, 691200)
    order_lease_seconds       = optional(number, 60)
  })
  default = {}

  validation {
    condition     = var.limits.handler_timeout_seconds >= 10 && var.limits.handler_timeout_seconds <= 600
    error_message = "limits.handler_timeout_seconds must be from 10 to 600."
  }

  validation {
    condition     = var.limits.function_timeout_seconds > var.limits.handler_timeout_seconds
    error_message = "limits.function_timeout_seconds must be above limits.handler_timeout_seconds: the platform would cut handlers off, and their claims would stay until the lease ends."
  }

  validation {
    condition     = var.limits.ack_deadline_seconds > var.limits.function_timeout_seconds
    error_message = "limits.ack_deadline_seconds must be above limits.function_timeout_seconds: messages would come again while they are handled."
  }

  validation {
    condition     = var.limits.ack_deadline_seconds >= 10 && var.limits.ack_deadline_seconds <= 600
    error_message = "limits.ack_deadline_seconds must be from 10 to 600, what Pub/Sub accepts."
  }

  validation {
    condition     = var.limits.max_delivery_attempts >= 5 && var.limits.max_delivery_attempts <= 100 && floor(var.limits.max_delivery_attempts) == var.limits.max_delivery_attempts
    error_message = "limits.max_delivery_attempts must be a whole number from 5 to 100, what Pub/Sub accepts."
  }

  validation {
    condition     = var.limits.minimum_backoff_seconds >= 1 && var.limits.maximum_backoff_seconds <= 600 && var.limits.minimum_backoff_seconds <= var.limits.maximum_backoff_seconds
    error_message = "limits.minimum_backoff_seconds must be from 1 to limits.maximum_backoff_seconds, and that at most 600."
  }

  validation {
    # As the function itself judges it: the first attempt, and one refusal per backoff while a claim stands.
    condition     = 1 + ceil(var.limits.dedup_lease_seconds / max(1, var.limits.minimum_backoff_seconds)) < var.limits.max_delivery_attempts
    error_message = "limits.max_delivery_attempts times limits.minimum_backoff_seconds must be above limits.dedup_lease_seconds: a message that is only being worked on would be dead-lettered."
  }

  validation {
    condition = sum([
      for pause in range(var.limits.max_delivery_attempts - 1) :
      min(var.limits.maximum_backoff_seconds, var.limits.minimum_backoff_seconds * pow(2, min(pause, 20)))
    ]) >= 60
    error_message = "The pauses of all attempts together must be at least 60 seconds, or a short outage of the store sends good messages to the dead letters: raise limits.max_delivery_attempts or limits.minimum_backoff_seconds."
  }

  validation {
    condition     = var.limits.message_retention_seconds >= 600 && var.limits.message_retention_seconds <= 2678400
    error_message = "limits.message_retention_seconds must be from 600 (10 minutes) to 2678400 (31 days), what Pub/Sub accepts."
  }

  validation {
    condition     = var.limits.dedup_retention_seconds >= var.limits.message_retention_seconds
    error_message = "limits.dedup_retention_seconds must be at least limits.message_retention_seconds: a message that comes back later than its record would run again."
  }

  validation {
    condition     = var.limits.dedup_lease_seconds >= 1 && var.limits.dedup_lease_seconds < var.limits.dedup_retention_seconds
    error_message = "limits.dedup_lease_seconds must be at least 1 and below limits.dedup_retention_seconds."
  }

  validation {
    condition     = var.limits.order_lease_seconds >= 1
    error_message = "limits.order_lease_seconds must be at least 1."
  }
}

variable "dedup" {
  description = "For dedup, pipeline and saga: what becomes of a known `dedupId` with other data (`on_conflict`: deadLetter, ack or, not for saga, process), of messages while the store is down (`on_store_unavailable`: retry or, not for saga, process), and how keys in Redis begin. Null: as the function does by itself."
  type = object({
    on_conflict          = optional(string)
    on_store_unavailable = optional(string)
    redis_prefix         = optional(string)
  })
  default = {}

  validation {
    condition     = length([for value in values(var.dedup) : value if value != null]) == 0 || contains(["dedup", "pipeline", "saga"], var.function)
    error_message = "dedup may be set for the functions dedup, pipeline and saga only."
  }

  validation {
    # An instance and the record of its event are one commit.
    condition     = var.function != "saga" || (var.dedup.on_conflict != "process" && var.dedup.on_store_unavailable != "process")
    error_message = "dedup.on_conflict and dedup.on_store_unavailable must not be process for saga: an event without its record would be a second effect."
  }

  validation {
    condition     = var.dedup.on_conflict == null ? true : contains(["deadLetter", "ack", "process"], var.dedup.on_conflict)
    error_message = "dedup.on_conflict must be deadLetter, ack or process."
  }

  validation {
    condition     = var.dedup.on_store_unavailable == null ? true : contains(["retry", "process"], var.dedup.on_store_unavailable)
    error_message = "dedup.on_store_unavailable must be retry or process."
  }

  validation {
    condition     = var.dedup.redis_prefix == null ? true : var.has_redis && can(regex("^[^[:space:]]{1,100}$", var.dedup.redis_prefix))
    error_message = "dedup.redis_prefix must have 1 to 100 characters without spaces, and may be set only together with redis."
  }
}

variable "order" {
  description = "For fifo and pipeline: the first number of a stream (`start`: a number, or counter), how often a number is started, what becomes of poison (`on_poison`: block or skip), of numbers that do not come (`on_gap`: wait or skip, after `gap_timeout_seconds`) and of numbers that are done and whose content is not remembered (`on_unknown_stale`: deadLetter or ack), and whether a stream belongs to one subscription or to all of the function (`scope`: source or consumer). Null: as the function does by itself."
  type = object({
    start               = optional(string)
    max_attempts        = optional(number)
    on_poison           = optional(string)
    on_gap              = optional(string)
    gap_timeout_seconds = optional(number)
    on_unknown_stale    = optional(string)
    scope               = optional(string)
  })
  default = {}

  validation {
    condition = (
      length([
        for value in [var.order.start, var.order.on_poison, var.order.on_gap, var.order.on_unknown_stale, var.order.scope] :
        value if value != null
      ]) == 0
      && var.order.max_attempts == null && var.order.gap_timeout_seconds == null
    ) || contains(["fifo", "pipeline"], var.function)
    error_message = "order may be set for the functions fifo and pipeline only."
  }

  validation {
    condition     = var.order.start == null ? true : can(regex("^(counter|[1-9][0-9]{0,14})$", var.order.start))
    error_message = "order.start must be a whole number from 1, or counter."
  }

  validation {
    condition     = var.order.max_attempts == null ? true : var.order.max_attempts >= 1 && floor(var.order.max_attempts) == var.order.max_attempts
    error_message = "order.max_attempts must be a whole number from 1."
  }

  validation {
    condition     = coalesce(var.order.max_attempts, 10) < var.limits.max_delivery_attempts || !contains(["fifo", "pipeline"], var.function)
    error_message = "limits.max_delivery_attempts must be above order.max_attempts (10 unless set): Pub/Sub would give a message up before its stream does, and leave a hole in it."
  }

  validation {
    condition     = var.order.on_poison == null ? true : contains(["block", "skip"], var.order.on_poison)
    error_message = "order.on_poison must be block or skip."
  }

  validation {
    condition     = var.order.on_gap == null ? true : contains(["wait", "skip"], var.order.on_gap)
    error_message = "order.on_gap must be wait or skip."
  }

  validation {
    condition     = var.order.on_unknown_stale == null ? true : contains(["deadLetter", "ack"], var.order.on_unknown_stale)
    error_message = "order.on_unknown_stale must be deadLetter or ack."
  }

  validation {
    condition     = var.order.scope == null ? true : contains(["source", "consumer"], var.order.scope)
    error_message = "order.scope must be source or consumer."
  }

  validation {
    condition     = var.order.gap_timeout_seconds == null ? true : var.order.gap_timeout_seconds >= 1
    error_message = "order.gap_timeout_seconds must be at least 1."
  }
}

variable "has_wake" {
  description = "Whether a queue for wake-ups is given."
  type        = bool
  default     = false

  validation {
    condition     = !var.has_wake || contains(["fifo", "pipeline"], var.function)
    error_message = "wake_queue may be set for the functions fifo and pipeline only: no other has streams to wake."
  }

  validation {
    # A wake-up is asked for within 3 seconds after the handler's time.
    condition     = !var.has_wake || var.limits.function_timeout_seconds >= var.limits.handler_timeout_seconds + 5
    error_message = "limits.function_timeout_seconds must be at least 5 seconds above limits.handler_timeout_seconds where wake_queue is set: a delivery asks for its wake-up after the handler's time."
  }
}

variable "has_outbox" {
  description = "Whether the function's sweep publishes what the outbox and the inbox left behind."
  type        = bool
  default     = false
}

variable "outbox_shards" {
  description = "The `shards` option of the publishers' outbox. Null: the default, 16."
  type        = number
  default     = null

  validation {
    condition     = var.outbox_shards == null ? true : var.has_outbox && var.outbox_shards >= 1 && var.outbox_shards <= 256 && floor(var.outbox_shards) == var.outbox_shards
    error_message = "outbox_shards must be a whole number from 1 to 256, and may be set only together with outbox."
  }
}

variable "counter_scope" {
  description = "The `scope` option of the publishers' counters. Null: they have none."
  type        = string
  default     = null

  validation {
    condition     = var.counter_scope == null ? true : length(var.counter_scope) >= 1 && length(var.counter_scope) <= 1024 && (var.has_outbox || var.order.start == "counter")
    error_message = "counter_scope must have 1 to 1,024 characters, and may be set only together with outbox, or where order.start is counter."
  }
}

variable "service" {
  description = "Size of the function. Deliveries of one instance share requests to the store, so a few large instances are cheaper than many small ones. `max_bytes_in_flight`: bytes of messages that an instance takes at once, what is more is refused and comes again; null: (memory - 160 MiB) / 5."
  type = object({
    cpu           = optional(number, 1)
    memory        = optional(string, "512Mi")
    concurrency   = optional(number, 80)
    min_instances = optional(number, 0)
    max_instances = optional(number, 20)
    # Null: as many as fit the memory.
    max_bytes_in_flight = optional(number)
  })
  default = {}

  validation {
    condition     = var.service.concurrency >= 1 && var.service.concurrency <= 1000
    error_message = "service.concurrency must be from 1 to 1000, what Cloud Run accepts."
  }

  validation {
    condition     = var.service.concurrency == 1 || var.service.cpu >= 1
    error_message = "service.cpu must be at least 1 where service.concurrency is above 1: the platform accepts no other."
  }

  validation {
    condition     = can(regex("^[0-9]+(Mi|Gi|M|G)$", var.service.memory))
    error_message = "service.memory must be a size such as 512Mi or 1Gi."
  }

  validation {
    # 160 MiB, and five times the 14 MiB of a message of 10 MB in base64.
    condition = !can(regex("^[0-9]+(Mi|Gi|M|G)$", var.service.memory)) || try(
      tonumber(regex("^[0-9]+", var.service.memory)) * { Mi = 1048576, Gi = 1073741824, M = 1000000, G = 1000000000 }[regex("[A-Za-z]+$", var.service.memory)], 0
    ) >= 241172480
    error_message = "service.memory must be at least 230Mi: one message of 10 MB would not fit."
  }

  validation {
    condition = var.service.max_bytes_in_flight == null ? true : var.service.max_bytes_in_flight >= 1048576 && floor(var.service.max_bytes_in_flight) == var.service.max_bytes_in_flight && var.service.max_bytes_in_flight <= try(
      tonumber(regex("^[0-9]+", var.service.memory)) * { Mi = 1048576, Gi = 1073741824, M = 1000000, G = 1000000000 }[regex("[A-Za-z]+$", var.service.memory)] - 167772160, 0
    ) / 5
    error_message = "service.max_bytes_in_flight must be a whole number from 1048576 to (service.memory - 160 MiB) / 5: with more in flight the instance runs out of memory, and every message on it loses a delivery attempt."
  }

  validation {
    condition     = var.service.min_instances >= 0 && var.service.max_instances >= 1 && var.service.min_instances <= var.service.max_instances
    error_message = "service.min_instances must be from 0 to service.max_instances, and that at least 1."
  }
}
