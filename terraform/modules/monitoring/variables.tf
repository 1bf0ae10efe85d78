variable "project_id" {
  description = "The project."
  type        = string
}

variable "name" {
  description = "First part of the names of alerts, metric and dashboard."
  type        = string
  default     = "pubsub-guarantees"
}

variable "functions" {
  description = "The functions by name: their push subscription (`subscription.name` of the module guarantee), and how old its oldest message may become before an alert opens."
  type = map(object({
    subscription       = string
    oldest_age_seconds = optional(number, 600)
  }))

  validation {
    condition     = length(var.functions) >= 1
    error_message = "functions must have at least one function."
  }
}

variable "dead_letter_subscriptions" {
  description = "Names of the subscriptions that keep dead letters, by any key (`dead_letter_subscription.name` of the modules guarantee and republisher)."
  type        = map(string)
}

variable "queues" {
  description = "The queues: `ids` of the module delay-queues."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for queue in values(var.queues) : can(regex("^projects/[^/]+/locations/[^/]+/queues/[^/]+$", queue))])
    error_message = "queues must have full names, projects/P/locations/L/queues/Q: the ids of the module delay-queues."
  }
}

variable "lateness_seconds" {
  description = "How long after its time a task may be called before an alert opens."
  type        = number
  default     = 60
}

variable "depth_tasks" {
  description = "How many tasks a queue may hold before an alert opens, those included that wait for their time. Null: any number."
  type        = number
  default     = 100000

  validation {
    condition     = var.depth_tasks == null ? true : var.depth_tasks >= 1
    error_message = "depth_tasks must be at least 1, or null for any number."
  }
}

variable "sweeps" {
  description = "Names of the jobs that call sweeps (`job.name` of the module sweep): an alert opens when one fails, or does not run."
  type        = set(string)
  default     = []
}

variable "streams" {
  description = "Names of the functions fifo and pipeline, whose streams raise an alert when one is blocked, or waits for a missing number for longer than `order.gap_timeout_seconds` of the module guarantee."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.streams, keys(var.functions))) == 0
    error_message = "streams must be names that functions has."
  }
}

variable "outboxes" {
  description = "Names of the functions with `outbox`, and of the functions saga: an alert opens when the sweep of one cannot publish a row of the outbox or the inbox."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.outboxes, keys(var.functions))) == 0
    error_message = "outboxes must be names that functions has."
  }
}

variable "sagas" {
  description = "Names of the functions saga: an alert opens when a saga of one is parked."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.sagas, keys(var.functions))) == 0
    error_message = "sagas must be names that functions has."
  }
}

variable "republisher" {
  description = "The republisher's service, `service` of the module republisher: an alert opens when it refuses a task. Null: there is none."
  type = object({
    app_engine = optional(string)
    cloud_run  = optional(string)
  })
  default = null

  validation {
    condition     = var.republisher == null ? true : (var.republisher.app_engine == null) != (var.republisher.cloud_run == null)
    error_message = "republisher must have one of app_engine and cloud_run: the service of the module republisher."
  }
}

variable "notification_channels" {
  description = "Full names of the channels that incidents are sent to. Empty: incidents open, and are sent to no channel."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for channel in var.notification_channels : can(regex("^projects/[^/]+/notificationChannels/[^/]+$", channel))])
    error_message = "notification_channels must be full names, projects/P/notificationChannels/N."
  }
}

variable "create_dashboard" {
  description = "Whether to create the dashboard."
  type        = bool
  default     = true
}

variable "labels" {
  description = "Labels of all that can have them."
  type        = map(string)
  default     = {}
}
