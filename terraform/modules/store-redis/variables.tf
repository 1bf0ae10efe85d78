variable "project_id" {
  description = "The project."
  type        = string
}

variable "region" {
  description = "Region of the instance: that of the functions."
  type        = string
}

variable "name" {
  description = "Name of the instance and first part of the secrets' names."
  type        = string
  default     = "guarantees"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,38}[a-z0-9]$", var.name))
    error_message = "name must have 2 to 40 lower-case letters, digits and hyphens, beginning with a letter."
  }
}

variable "network" {
  description = "Full name of the VPC network that the instance is reached from, projects/P/global/networks/N."
  type        = string

  validation {
    condition     = can(regex("^projects/[^/]+/global/networks/[^/]+$", var.network))
    error_message = "network must be a full name, projects/P/global/networks/N."
  }
}

variable "connect_mode" {
  description = "DIRECT_PEERING, or PRIVATE_SERVICE_ACCESS where the network has a private services connection (a shared VPC needs it)."
  type        = string
  default     = "DIRECT_PEERING"

  validation {
    condition     = contains(["DIRECT_PEERING", "PRIVATE_SERVICE_ACCESS"], var.connect_mode)
    error_message = "connect_mode must be DIRECT_PEERING or PRIVATE_SERVICE_ACCESS."
  }
}

variable "tier" {
  description = "STANDARD_HA, with a replica in another zone, or BASIC: without one, and a failure forgets every claim."
  type        = string
  default     = "STANDARD_HA"

  validation {
    condition     = contains(["STANDARD_HA", "BASIC"], var.tier)
    error_message = "tier must be STANDARD_HA or BASIC."
  }
}

variable "memory_size_gb" {
  description = "Memory in GB. Each message of the last DEDUP_RETENTION takes 104 bytes, so 1,000 messages an hour for 8 days take 20 MB. When it is full, nothing is processed."
  type        = number
  default     = 1

  validation {
    condition     = var.memory_size_gb >= 1 && var.memory_size_gb <= 300 && floor(var.memory_size_gb) == var.memory_size_gb
    error_message = "memory_size_gb must be a whole number from 1 to 300."
  }
}

variable "redis_version" {
  description = "Version of Redis, for example REDIS_7_2."
  type        = string
  default     = "REDIS_7_2"

  validation {
    condition     = contains(["REDIS_6_X", "REDIS_7_0", "REDIS_7_2"], var.redis_version)
    error_message = "redis_version must be REDIS_6_X, REDIS_7_0 or REDIS_7_2: older ones have no TLS."
  }
}

variable "deletion_protection" {
  description = "Whether Terraform refuses to delete the instance."
  type        = bool
  default     = true
}

variable "labels" {
  description = "Labels of all that can have them."
  type        = map(string)
  default     = {}
}

variable "kms_key" {
  description = "Key of Cloud KMS that the instance and its secrets are encrypted with, in the region. The accounts of Memorystore and Secret Manager must be allowed to use it. Null: Google's."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key == null ? true : can(regex("^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$", var.kms_key))
    error_message = "kms_key must be a full name, projects/P/locations/L/keyRings/R/cryptoKeys/K."
  }
}

variable "secret_regions" {
  description = "Regions that the secrets are kept in. Empty: everywhere, as Google likes, which an organisation may forbid. With `kms_key` at least one."
  type        = set(string)
  default     = []

  validation {
    condition     = var.kms_key == null || length(var.secret_regions) > 0
    error_message = "secret_regions must have at least one region where kms_key is set: the key is in one place, and so are the secrets."
  }
}
