variable "project_id" {
  description = "The project."
  type        = string
}

variable "region" {
  description = "Region of the function, and of the job."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "region must be a region such as europe-west1, not a zone or a continent."
  }
}

variable "function" {
  description = "The function to sweep, as the module guarantee puts it out: its name, its URL, and how long it works at one request."
  type = object({
    name                    = string
    uri                     = string
    handler_timeout_seconds = optional(number, 60)
  })
}

variable "schedule" {
  description = "How often, as cron writes it. What waits longest for a sweep waits for this interval."
  type        = string
  default     = "* * * * *"
}

variable "attempt_deadline_seconds" {
  description = "How long one sweep may take; the function ends it by itself after its HANDLER_TIMEOUT."
  type        = number
  default     = 180

  validation {
    condition     = var.attempt_deadline_seconds >= 15 && var.attempt_deadline_seconds <= 1800
    error_message = "attempt_deadline_seconds must be from 15 to 1800, what Cloud Scheduler accepts."
  }

  validation {
    condition     = var.attempt_deadline_seconds > var.function.handler_timeout_seconds
    error_message = "attempt_deadline_seconds must be above function.handler_timeout_seconds: a sweep that is still at work would count as failed, and the next one run beside it."
  }
}
