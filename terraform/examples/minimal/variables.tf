variable "project_id" {
  description = "The project."
  type        = string
}

variable "project_number" {
  description = "Number of the project: `gcloud projects describe PROJECT --format='value(projectNumber)'`. It is not read here, because a plan that reads it after other changes does not know the members of its grants, and replaces them."
  type        = string

  validation {
    condition     = can(regex("^[0-9]+$", var.project_number))
    error_message = "project_number must be a number such as 123456789012, not the ID of the project."
  }
}

variable "region" {
  description = "Region of everything."
  type        = string
  default     = "europe-west1"
}

variable "packages" {
  description = "The folder that `npm run package` writes to."
  type        = string
  default     = "../../../build"
}

variable "labels" {
  description = "Labels of all that can have them."
  type        = map(string)
  default     = {}
}

variable "kms_key" {
  description = "Key of Cloud KMS for topics and Firestore. Null: Google's."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key == null ? true : can(regex("^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$", var.kms_key))
    error_message = "kms_key must be a full name, projects/P/locations/L/keyRings/R/cryptoKeys/K."
  }
}

variable "storage_regions" {
  description = "Regions that messages may be stored in; empty: as the organisation's policy has it."
  type        = set(string)
  default     = []
}
