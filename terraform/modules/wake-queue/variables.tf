variable "project_id" {
  description = "The project."
  type        = string
}

variable "location" {
  description = "Region of the queue: near the functions."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.location))
    error_message = "location must be a region such as europe-west1."
  }
}

variable "name" {
  description = "ID of the queue."
  type        = string
  default     = "wake"

  validation {
    condition     = can(regex("^[A-Za-z0-9-]{1,80}$", var.name))
    error_message = "name must have 1 to 80 letters, digits and hyphens."
  }
}

variable "name_suffix" {
  description = "Appended to the ID. The name of a deleted queue cannot be used again for days: change the suffix to create the queue anew before that."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^[A-Za-z0-9-]{0,19}$", var.name_suffix))
    error_message = "name_suffix must have at most 19 letters, digits and hyphens."
  }
}

variable "max_dispatches_per_second" {
  description = "How many wake-ups a second at most; the platform's limit is 500."
  type        = number
  default     = 500

  validation {
    condition     = var.max_dispatches_per_second > 0 && var.max_dispatches_per_second <= 500
    error_message = "max_dispatches_per_second must be above 0 and at most 500, the platform's limit for one queue."
  }
}

variable "max_concurrent_dispatches" {
  description = "How many wake-ups at once at most."
  type        = number
  default     = 100

  validation {
    condition     = var.max_concurrent_dispatches >= 1 && var.max_concurrent_dispatches <= 5000
    error_message = "max_concurrent_dispatches must be from 1 to 5000, the platform's limit for one queue."
  }
}
