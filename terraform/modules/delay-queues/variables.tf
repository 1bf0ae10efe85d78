variable "project_id" {
  description = "The project."
  type        = string
}

variable "location" {
  description = "Region of the queues. With App Engine as the republisher it must be the app's (europe-west is europe-west1 here)."
  type        = string
}

variable "queues" {
  description = "The queues by ID. `max_dispatches_per_second` is at most 500, the platform's limit for each; for more, add queues."
  type = map(object({
    max_dispatches_per_second = optional(number, 500)
    max_concurrent_dispatches = optional(number, 1000)
    min_backoff_seconds       = optional(number, 1)
    max_backoff_seconds       = optional(number, 300)
    max_doublings             = optional(number, 8)
    log_sampling_ratio        = optional(number, 0.01)
  }))
  default = { delay = {} }

  validation {
    condition     = length(var.queues) >= 1
    error_message = "queues must have at least one queue."
  }

  validation {
    condition     = alltrue([for id in keys(var.queues) : can(regex("^[A-Za-z0-9-]{1,80}$", id))])
    error_message = "The keys of queues must be IDs of 1 to 80 letters, digits and hyphens."
  }

  validation {
    condition     = alltrue([for queue in values(var.queues) : queue.max_dispatches_per_second > 0 && queue.max_dispatches_per_second <= 500])
    error_message = "max_dispatches_per_second must be above 0 and at most 500, the platform's limit for one queue; for more, add queues."
  }

  validation {
    condition     = alltrue([for queue in values(var.queues) : queue.min_backoff_seconds > 0 && queue.min_backoff_seconds <= queue.max_backoff_seconds])
    error_message = "min_backoff_seconds must be above 0 and at most max_backoff_seconds."
  }
}

variable "draining_queues" {
  description = "Queues that nothing new is sent to, and that the republisher serves until they are empty: to take a queue away, move its entry here from `queues`, 31 days before it is deleted."
  type = map(object({
    max_dispatches_per_second = optional(number, 500)
    max_concurrent_dispatches = optional(number, 1000)
    min_backoff_seconds       = optional(number, 1)
    max_backoff_seconds       = optional(number, 300)
    max_doublings             = optional(number, 8)
    log_sampling_ratio        = optional(number, 0.01)
  }))
  default = {}

  validation {
    condition     = length(setintersection(keys(var.draining_queues), keys(var.queues))) == 0
    error_message = "draining_queues must not have a key that queues has: a queue drains, or messages are sent to it."
  }
}

variable "name_suffix" {
  description = "Appended to each ID, of all queues and from the beginning: the name of a deleted queue cannot be used again for days. A change would replace every queue with what waits in it, which Terraform refuses: add queues with other IDs, and drain the old ones."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^[A-Za-z0-9-]{0,19}$", var.name_suffix))
    error_message = "name_suffix must have at most 19 letters, digits and hyphens."
  }
}
