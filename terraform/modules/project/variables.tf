variable "project_id" {
  description = "The project."
  type        = string
}

variable "location" {
  description = "Where the bucket of sources is, for example europe-west1 or EU."
  type        = string
}

variable "services" {
  description = "APIs to enable besides those that every deployment needs. For Redis: redis.googleapis.com and secretmanager.googleapis.com; for App Engine: appengine.googleapis.com."
  type        = set(string)
  default     = []
}

variable "bucket_name" {
  description = "Name of the bucket of sources. Default: PROJECT-pubsub-guarantees-sources."
  type        = string
  default     = null
}

variable "build_account_id" {
  description = "ID of the account that Cloud Build builds with."
  type        = string
  default     = "guarantees-build"
}

variable "labels" {
  description = "Labels of all that can have them."
  type        = map(string)
  default     = {}
}
