variable "project_id" {
  description = "The project. Topics, queues and secrets are in it too."
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
  description = "Region of the function."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "region must be a region such as europe-west1, not a zone or a continent."
  }
}

variable "name" {
  description = "Name of the function and first part of every name that belongs to it: 3 to 20 lower-case letters, digits and hyphens."
  type        = string
}

variable "function" {
  description = "The guarantee: dedup (once), delay (later), fifo (in order) or pipeline (all three); or saga, the orchestrator of sagas."
  type        = string
}

variable "source_topic" {
  description = "ID of the topic that publishers publish to; of saga the orchestrator's own, to which starts, replies and timers come."
  type        = string
}

variable "target_topic" {
  description = "ID of the topic that messages are forwarded to; null for saga, whose steps name their topics."
  type        = string
  default     = null
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
  description = "Where claims, order, schedules, sagas and large payloads are kept: `firestore` of the module store-firestore."
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
    region     = optional(string)
  })
  default = null

  validation {
    condition     = var.redis == null ? true : var.redis.region == null || var.redis.region == var.region
    error_message = "redis.region must be region, the function's: an instance is reached from its own region alone."
  }
}

variable "delay" {
  description = "For delay, pipeline and saga: the queues (`ids` of the module delay-queues) and what the queues call back (`target` of the module republisher)."
  type = object({
    queues = map(string)
    republisher = object({
      app_engine_service = optional(string)
      app_engine_role    = optional(string, "roles/appengine.appViewer")
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
    condition     = alltrue([for queue in try(values(var.delay.queues), []) : can(regex("^projects/[^/]+/locations/[^/]+/queues/[^/]+$", queue))])
    error_message = "delay.queues must have full names, projects/P/locations/L/queues/Q: the ids of the module delay-queues."
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

variable "saga" {
  description = "For saga: the file of the package whose default export is the list of definitions (`module`), and the IDs of the topics that their steps name (`topics`). Give the function a sweep."
  type = object({
    module = optional(string, "sagas.js")
    topics = set(string)
  })
  default = null
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

variable "dedup" {
  description = "For dedup, pipeline and saga: what becomes of a known `dedupId` with other data (`on_conflict`: deadLetter, ack or, not for saga, process), of messages while the store is down (`on_store_unavailable`: retry or, not for saga, process), and how keys in Redis begin. Null: as the function does by itself."
  type = object({
    on_conflict          = optional(string)
    on_store_unavailable = optional(string)
    redis_prefix         = optional(string)
  })
  default = {}
}

variable "order" {
  description = "For fifo and pipeline: the first number of a stream (`start`: a number, or counter), how often a number is started, what becomes of poison (`on_poison`: block or skip), of numbers that do not come (`on_gap`: wait or skip, after `gap_timeout_seconds`) and of numbers that are done and whose content is not remembered (`on_unknown_stale`: deadLetter or ack), and whether a stream belongs to one subscription or to all of the function (`scope`: source or consumer). Null: as the function does by itself."
  type = object({
    start               = optional(string)
    max_attempts        = optional(number)
    on_poison           = optional(string)
    on_gap              = optional(string)
    gap_timeout_seconds = optional(number)
    on_unknown_stale    = optional(string)
    scope               = optional(string)
  })
  default = {}
}

variable "wake_queue" {
  description = "For fifo and pipeline: full name of a queue (`id` of the module wake-queue) for tasks that wake a stream whose next message has failed. Null: the sweep alone does."
  type        = string
  default     = null

  validation {
    condition     = var.wake_queue == null ? true : can(regex("^projects/[^/]+/locations/[^/]+/queues/[^/]+$", var.wake_queue))
    error_message = "wake_queue must be a full name, projects/P/locations/L/queues/Q: the id of the module wake-queue."
  }
}

variable "outbox" {
  description = "Not null: the sweep also publishes what publishers' outboxes and the inbox left behind in the function's database, to these topics (IDs); for fifo and pipeline also to source_topic. The sweep of saga does so without it, to source_topic and saga.topics. shards: where the publishers' outbox has another number than 16. Give the function a sweep."
  type = object({
    topics = optional(set(string), [])
    shards = optional(number)
  })
  default = null
}

variable "counter_scope" {
  description = "The `scope` option of the publishers' counters, with outbox or where order.start is counter. Null: they have none."
  type        = string
  default     = null
}

variable "log_level" {
  description = "info, or debug: a line for every delivery."
  type        = string
  default     = "info"

  validation {
    condition     = contains(["info", "debug"], var.log_level)
    error_message = "log_level must be info or debug."
  }
}

variable "check_windows" {
  description = "Whether the function reads its subscription when it starts, and says what does not fit."
  type        = bool
  default     = true
}

variable "strict_attributes" {
  description = "Whether attributes that only look like those of the wire contract make a message a dead letter. Otherwise they are passed on, with a warning."
  type        = bool
  default     = false
}

variable "service" {
  description = "Size of the function. Deliveries of one instance share requests to the store, so a few large instances are cheaper than many small ones. `max_bytes_in_flight`: bytes of messages that an instance takes at once, what is more is refused and comes again; null: (memory - 160 MiB) / 5."
  type = object({
    cpu           = optional(number, 1)
    memory        = optional(string, "512Mi")
    concurrency   = optional(number, 80)
    min_instances = optional(number, 0)
    max_instances = optional(number, 20)
    # Null: as many as fit the memory.
    max_bytes_in_flight = optional(number)
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
  description = "More environment variables: NODE_OPTIONS, OTEL_SERVICE_NAME and the like. What other variables set is refused here, and so is a secret."
  type        = map(string)
  default     = {}

  validation {
    # By their beginnings, so that a misspelt one is refused as well.
    condition = length([
      for name in keys(var.environment) : name if can(regex(
        "^(CHECK_|COLLECTION_|CONSUMER|COUNTER_|DEAD_LETTER_|DEDUP_|DELAY_|FIRESTORE_|FUNCTION_|GOOGLE_CLOUD_PROJECT|HANDLER_|K_|LOG_|MAX_BYTES_|NODE_EXTRA_CA_CERTS|ORDER_|OUTBOX|PORT$|REDIS_|REPUBLISHER_|SAGA_|SOURCE_|STRICT_|TARGET_|TASKS_|WAKE_)", name
      ))
    ]) == 0
    error_message = "environment has a variable that the module or the platform sets itself: set dedup, order, limits, firestore, redis, delay, saga, outbox, wake_queue, counter_scope, log_level, check_windows, strict_attributes or the topics instead."
  }

  validation {
    condition     = length([for name, value in var.environment : name if can(regex("(?i)(password|secret|token|api_?key)", name)) || can(regex("^rediss?://", value))]) == 0
    error_message = "environment is readable by every account that may look at the function: a secret does not belong in it."
  }
}

variable "network" {
  description = "Direct VPC egress, which Redis is reached through: names of a network and a subnetwork (/26 or larger) in the function's region. With `all_traffic` what the function calls goes through it as well: the subnetwork then needs Private Google Access."
  type = object({
    network     = string
    subnetwork  = string
    all_traffic = optional(bool, false)
  })
  default = null

  validation {
    condition     = var.network != null || var.redis == null
    error_message = "network must be set together with redis: it is not to be reached without."
  }
}

variable "ingress" {
  description = "Which callers can reach the function at all, besides the check of the token: ALLOW_INTERNAL_ONLY (Pub/Sub and Cloud Scheduler of the same project count as internal) or ALLOW_ALL."
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

  validation {
    condition     = var.build_service_account == null ? true : can(regex("^projects/[^/]+/serviceAccounts/[^/@]+@[^/]+$", var.build_service_account))
    error_message = "build_service_account must be a full name, projects/P/serviceAccounts/E, not an e-mail address alone."
  }
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

variable "kms_key" {
  description = "Key of Cloud KMS that dead letters are encrypted with, a full name, in a location that fits. Pub/Sub's own account must be allowed to use it. Null: Google's."
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

variable "worker_pool" {
  description = "Private pool of Cloud Build that the function is built in, a full name. Null: Google's own."
  type        = string
  default     = null

  validation {
    condition     = var.worker_pool == null ? true : can(regex("^projects/[^/]+/locations/[^/]+/workerPools/[^/]+$", var.worker_pool))
    error_message = "worker_pool must be a full name, projects/P/locations/L/workerPools/W."
  }
}
