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
  description = "The guarantee: dedup, delay, fifo or pipeline."
  type        = string

  validation {
    condition     = contains(["dedup", "delay", "fifo", "pipeline"], var.function)
    error_message = "function must be dedup, delay, fifo or pipeline."
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
  description = "ID of the topic that messages are forwarded to."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$", var.target_topic))
    error_message = "target_topic must be the ID of a topic in this project (3 to 255 characters, beginning with a letter), not a full name."
  }

  validation {
    condition     = var.target_topic != var.source_topic
    error_message = "target_topic must be another topic than source_topic: a message that is published to where it came from comes round for ever."
  }

  validation {
    condition     = !contains([var.source_topic, var.target_topic], "${var.name}-dead-letters")
    error_message = "NAME-dead-letters is the name of the dead-letter topic: source_topic and target_topic must be others."
  }
}

variable "has_delay" {
  description = "Whether queues and a republisher are given."
  type        = bool
  default     = false

  validation {
    condition     = var.has_delay == contains(["delay", "pipeline"], var.function)
    error_message = "delay must be set for the functions delay and pipeline, and for no other."
  }
}

variable "has_redis" {
  description = "Whether claims are kept in Redis."
  type        = bool
  default     = false

  validation {
    condition     = !var.has_redis || contains(["dedup", "pipeline"], var.function)
    error_message = "redis may be set for the functions dedup and pipeline only: order, schedules and payloads need Firestore."
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

variable "service" {
  description = "Size of the function. Deliveries of one instance share requests to the store, so a few large instances are cheaper than many small ones."
  type = object({
    cpu           = optional(number, 1)
    memory        = optional(string, "512Mi")
    concurrency   = optional(number, 80)
    min_instances = optional(number, 0)
    max_instances = optional(number, 20)
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
    condition     = var.service.min_instances >= 0 && var.service.max_instances >= 1 && var.service.min_instances <= var.service.max_instances
    error_message = "service.min_instances must be from 0 to service.max_instances, and that at least 1."
  }
}
