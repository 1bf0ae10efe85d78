variable "project_id" {
  description = "The project."
  type        = string
}

variable "region" {
  description = "Region of the function."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "region must be a region such as europe-west1, not a zone or a continent."
  }
}

variable "location" {
  description = "Location of the Firestore database, a region or a multi-region such as eur3: Eventarc delivers its events from there alone. It may be another one than the function's."
  type        = string
}

variable "function" {
  description = "The function with `outbox`, or `saga`, that is notified of the rows, as the module guarantee puts it out: its name and its URL. One is enough for all publishers of a database."
  type = object({
    name = string
    uri  = string
  })
}

variable "firestore" {
  description = "Where the rows are: `firestore` of the module store-firestore, as the function has it."
  type = object({
    database          = optional(string, "(default)")
    collection_prefix = optional(string, "pubsub-guarantees")
  })
  default = {}
}

variable "labels" {
  description = "Labels of the trigger."
  type        = map(string)
  default     = {}
}
