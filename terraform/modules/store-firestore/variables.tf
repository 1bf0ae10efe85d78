variable "project_id" {
  description = "The project."
  type        = string
}

variable "database" {
  description = "ID of the database. A database of its own keeps others' rules, backups and quotas apart."
  type        = string
  default     = "pubsub-guarantees"

  validation {
    condition     = can(regex("^(\\(default\\)|[a-z][a-z0-9-]{2,61}[a-z0-9])$", var.database))
    error_message = "database must be (default), or 4 to 63 lower-case letters, digits and hyphens, beginning with a letter."
  }
}

variable "create_database" {
  description = "Whether to create the database. An existing one must be in Native mode, Standard edition."
  type        = bool
  default     = true

  validation {
    condition     = !var.create_database || var.location != null
    error_message = "location must be set where create_database is true, for example europe-west1 or eur3."
  }
}

variable "location" {
  description = "Where a new database is; near the functions. Cannot be changed later."
  type        = string
  default     = null
}

variable "delete_protection" {
  description = "Whether a new database refuses to be deleted."
  type        = bool
  default     = true
}

variable "point_in_time_recovery" {
  description = "Whether a new database can be read and exported as it was within the last seven days. It is paid for."
  type        = bool
  default     = false
}

variable "collection_prefix" {
  description = "COLLECTION_PREFIX of the functions: what the name of each collection begins with."
  type        = string
  default     = "pubsub-guarantees"

  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9-]{0,99}$", var.collection_prefix))
    error_message = "collection_prefix must have at most 100 letters, digits and hyphens, beginning with a letter."
  }
}

variable "kms_key" {
  description = "Key of Cloud KMS that a new database is encrypted with, in its location. Cannot be changed later. Firestore's own account must be allowed to use it. Null: Google's."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key == null ? true : can(regex("^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$", var.kms_key))
    error_message = "kms_key must be a full name, projects/P/locations/L/keyRings/R/cryptoKeys/K."
  }
}
