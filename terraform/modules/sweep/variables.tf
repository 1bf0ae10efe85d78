variable "project_id" {
  description = "The project."
  type        = string
}

variable "region" {
  description = "Region of the function, and of the job."
  type        = string
}

variable "function" {
  description = "The function to sweep, as the module guarantee puts it out: its name and its URL."
  type = object({
    name = string
    uri  = string
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
}
