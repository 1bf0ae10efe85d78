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
  description = "The functions by name: their push subscription (`subscription.name` of the module guarantee), and how old its oldest message may become before somebody is told."
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
}

variable "lateness_seconds" {
  description = "How long after its time a task may be called before somebody is told."
  type        = number
  default     = 60
}

variable "gap_age_seconds" {
  description = "How long a stream may wait for a missing number before somebody is told; null: no such alert. It needs a metric made from logs, which alerts accept only minutes after it was made: where the first apply fails with 404, apply again."
  type        = number
  default     = null

  validation {
    condition     = var.gap_age_seconds == null ? true : var.gap_age_seconds >= 300 && var.gap_age_seconds % 60 == 0
    error_message = "gap_age_seconds must be a multiple of 60 and at least 300, or null."
  }
}

variable "notification_channels" {
  description = "Full names of the channels that are told. Empty: incidents are opened, and nobody is told."
  type        = list(string)
  default     = []
}

variable "create_dashboard" {
  description = "Whether to create the dashboard."
  type        = bool
  default     = true
}
