variable "project_id" {
  description = "The project. Topics, queues and secrets are in it too."
  type        = string
}

variable "project_number" {
  description = "Number of the project. Null: it is read, for which cloudresourcemanager.googleapis.com must be enabled."
  type        = string
  default     = null
}

variable "region" {
  description = "Region of the function."
  type        = string
}

variable "name" {
  description = "Name of the function and first part of every name that belongs to it: 3 to 20 lower-case letters, digits and hyphens."
  type        = string
}

variable "function" {
  description = "The guarantee: dedup (once), delay (later), fifo (in order) or pipeline (all three)."
  type        = string
}

variable "source_topic" {
  description = "ID of the topic that publishers publish to."
  type        = string
}

variable "target_topic" {
  description = "ID of the topic that messages are forwarded to."
  type        = string
}

variable "bundle" {
  description = "Bucket of sources, and path of the `functions.zip` that `npm run package` makes."
  type = object({
    bucket = string
    zip    = string
  })

  validation {
    condition     = try(fileexists(var.bundle.zip), false)
    error_message = "bundle.zip must be the path of a file: run npm run package, and give the path of build/functions.zip."
  }
}

variable "firestore" {
  description = "Where claims, order, schedules and large payloads are kept: `firestore` of the module store-firestore."
  type = object({
    database          = optional(string, "(default)")
    collection_prefix = optional(string, "pubsub-guarantees")
  })
  default = {}
}

variable "redis" {
  description = "For dedup and pipeline: claims in Redis instead. `secrets` of the module store-redis."
  type = object({
    url_secret = string
    ca_secret  = optional(string)
  })
  default = null
}

variable "delay" {
  description = "For delay and pipeline: the queues (`ids` of the module delay-queues) and who is called back (`target` of the module republisher)."
  type = object({
    queues = map(string)
    republisher = object({
      app_engine_service = optional(string)
      url                = optional(string)
      caller             = optional(object({ id = string, email = string }))
    })
    ledger   = optional(string, "keys")
    payloads = optional(bool, true)
  })
  default = null

  validation {
    condition     = var.delay == null || length(try(var.delay.queues, {})) >= 1
    error_message = "delay.queues must have at least one queue."
  }

  validation {
    condition     = var.delay == null || contains(["keys", "all", "off"], try(var.delay.ledger, ""))
    error_message = "delay.ledger must be keys, all or off."
  }

  validation {
    condition     = var.delay == null || (try(var.delay.republisher.app_engine_service, null) == null) != (try(var.delay.republisher.url, null) == null)
    error_message = "delay.republisher must have either app_engine_service or url."
  }

  validation {
    condition     = (try(var.delay.republisher.url, null) == null) == (try(var.delay.republisher.caller, null) == null)
    error_message = "delay.republisher.caller, the account whose token the queue sends, must be set together with delay.republisher.url."
  }
}

variable "limits" {
  description = "Times and limits, which must fit each other; what does not fit ends the plan with the reason. Units are in the names."
  type = object({
    handler_timeout_seconds   = optional(number, 60)
    function_timeout_seconds  = optional(number, 70)
    ack_deadline_seconds      = optional(number, 90)
    max_delivery_attempts     = optional(number, 20)
    minimum_backoff_seconds   = optional(number, 10)
    maximum_backoff_seconds   = optional(number, 600)
    message_retention_seconds = optional(number, 604800)
    dedup_lease_seconds       = optional(number, 30)
    dedup_retention_seconds   = optional(number, 691200)
    order_lease_seconds       = optional(number, 60)
  })
  default = {}
}

variable "service" {
  description = "Size of the function. Deliveries of one instance share requests to the store, so a few large instances are cheaper than many small ones."
  type = object({
    cpu           = optional(number, 1)
    memory        = optional(string, "512Mi")
    concurrency   = optional(number, 80)
    min_instances = optional(number, 0)
    max_instances = optional(number, 20)
  })
  default = {}
}

variable "runtime" {
  description = "Runtime of Cloud Functions: nodejs22 or nodejs24."
  type        = string
  default     = "nodejs22"

  validation {
    condition     = contains(["nodejs22", "nodejs24"], var.runtime)
    error_message = "runtime must be nodejs22 or nodejs24."
  }
}

variable "environment" {
  description = "More environment variables: LOG_LEVEL, CHECK_WINDOWS, DEDUP_ON_CONFLICT, DEDUP_ON_STORE_UNAVAILABLE, NODE_OPTIONS and the like. What other variables set is refused here."
  type        = map(string)
  default     = {}

  validation {
    condition = length(setintersection(keys(var.environment), [
      "COLLECTION_PREFIX", "CONSUMER", "DEAD_LETTER_TOPIC", "DEDUP_LEASE", "DEDUP_RETENTION", "DEDUP_STORE",
      "DELAY_LEDGER", "DELAY_PAYLOADS", "DELAY_QUEUE", "DELAY_QUEUES", "FIRESTORE_DATABASE", "FUNCTION_TARGET",
      "FUNCTION_TIMEOUT", "GOOGLE_CLOUD_PROJECT", "HANDLER_TIMEOUT", "NODE_EXTRA_CA_CERTS", "ORDER_LEASE",
      "REDIS_URL", "REPUBLISHER_SERVICE", "REPUBLISHER_SERVICE_ACCOUNT", "REPUBLISHER_URL", "SOURCE_SUBSCRIPTION",
      "SOURCE_TOPIC", "TARGET_TOPIC", "TASKS_LOCATION",
    ])) == 0
    error_message = "environment has a variable that the module sets itself from its other variables (limits, firestore, redis, delay, topics): set those instead."
  }
}

variable "network" {
  description = "Direct VPC egress, which Redis is reached through: names of a network and a subnetwork (/26 or larger) in the function's region."
  type = object({
    network    = string
    subnetwork = string
  })
  default = null

  validation {
    condition     = var.network != null || var.redis == null
    error_message = "network must be set together with redis: it is not to be reached without."
  }
}

variable "ingress" {
  description = "Who can reach the function at all, besides the check of the token: ALLOW_INTERNAL_ONLY (Pub/Sub and Cloud Scheduler of the same project count as internal) or ALLOW_ALL."
  type        = string
  default     = "ALLOW_INTERNAL_ONLY"

  validation {
    condition     = contains(["ALLOW_INTERNAL_ONLY", "ALLOW_ALL"], var.ingress)
    error_message = "ingress must be ALLOW_INTERNAL_ONLY or ALLOW_ALL."
  }
}

variable "filter" {
  description = "Filter of the subscription. Cannot be changed later."
  type        = string
  default     = null
}

variable "build_service_account" {
  description = "Full name of the account that builds: `build_account` of the module project. Null: the project's default, which in younger projects lacks the rights."
  type        = string
  default     = null
}

variable "grant_token_creator" {
  description = "Whether Pub/Sub's own account is allowed to make tokens of the push account. Only projects whose Pub/Sub is older than April 2021 need it; elsewhere it changes nothing."
  type        = bool
  default     = true
}

variable "labels" {
  description = "Labels of all that can have them."
  type        = map(string)
  default     = {}
}
