variable "project_id" {
  description = "The project. Topics and queues are in it too."
  type        = string
}

variable "project_number" {
  description = "Number of the project, needed on Cloud Run: `gcloud projects describe PROJECT --format='value(projectNumber)'`."
  type        = string
  default     = null

  validation {
    condition     = var.project_number == null ? var.cloud_run == null : can(regex("^[0-9]+$", var.project_number))
    error_message = "project_number must be set on Cloud Run, and be a number such as 123456789012."
  }
}

variable "name" {
  description = "First part of the names of its account and dead-letter topic, and the name of the service on Cloud Run: 3 to 20 lower-case letters, digits and hyphens."
  type        = string
  default     = "republisher"

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{1,18}[a-z0-9])$", var.name))
    error_message = "name must have 3 to 20 characters: lower-case letters, digits and hyphens, beginning with a letter and not ending with a hyphen."
  }
}

variable "allowed_topics" {
  description = "IDs of the topics that it may publish to: `target_topic` of each delay, `source_topic` of each pipeline."
  type        = set(string)

  validation {
    condition     = length(var.allowed_topics) >= 1
    error_message = "allowed_topics must have at least one topic: a task for any other is refused."
  }

  validation {
    condition     = !contains(var.allowed_topics, "${var.name}-dead-letters")
    error_message = "NAME-dead-letters is the name of the dead-letter topic: allowed_topics must be others."
  }
}

variable "queues" {
  description = "The queues: `ids` of the module delay-queues."
  type        = map(string)

  validation {
    condition     = length(var.queues) >= 1
    error_message = "queues must have at least one queue."
  }

  validation {
    condition     = alltrue([for queue in values(var.queues) : can(regex("^projects/[^/]+/locations/[^/]+/queues/[^/]+$", queue))])
    error_message = "queues must have full names, projects/P/locations/L/queues/Q: the ids of the module delay-queues."
  }
}

variable "draining_queues" {
  description = "Queues that nothing new is sent to, and whose calls it still takes: `draining_ids` of the module delay-queues."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for queue in values(var.draining_queues) : can(regex("^projects/[^/]+/locations/[^/]+/queues/[^/]+$", queue))])
    error_message = "draining_queues must have full names, projects/P/locations/L/queues/Q: the draining_ids of the module delay-queues."
  }
}

variable "firestore" {
  description = "Where schedules and large payloads are kept: the same as the functions'."
  type = object({
    database          = optional(string, "(default)")
    collection_prefix = optional(string, "pubsub-guarantees")
  })
  default = {}
}

variable "app_engine" {
  description = "On App Engine standard: bucket and path of `republisher.zip`. The first service of an app must be `default`. With `create_application` the app is made, in `location`: once for a project, for ever. With `internal_only` the service answers nothing from outside: Cloud Tasks counts as inside, which is documented for the firewall alone, so see that a delayed message arrives."
  type = object({
    bucket             = string
    zip                = string
    service            = optional(string, "republisher")
    runtime            = optional(string, "nodejs22")
    instance_class     = optional(string, "F1")
    max_instances      = optional(number, 10)
    create_application = optional(bool, false)
    location           = optional(string)
    internal_only      = optional(bool, false)
  })
  default = null

  validation {
    condition     = var.app_engine == null || try(fileexists(var.app_engine.zip), false)
    error_message = "app_engine.zip must be the path of a file: run npm run package, and give the path of build/republisher.zip."
  }

  validation {
    condition     = contains(["F1", "F2", "F4", "F4_1G"], try(var.app_engine.instance_class, "F1"))
    error_message = "app_engine.instance_class must be F1, F2, F4 or F4_1G: the version scales automatically."
  }

  validation {
    # App Engine says europe-west and us-central where Cloud Tasks says europe-west1 and us-central1.
    condition = !try(var.app_engine.create_application, false) || alltrue([
      for queue in values(var.queues) : try(split("/", queue)[3], "") == replace(coalesce(try(var.app_engine.location, null), "none"), "/^(europe-west|us-central)$/", "$${1}1")
    ])
    error_message = "app_engine.location must be the region of the queues: App Engine is called by queues of its own region alone."
  }

  validation {
    condition     = !try(var.app_engine.create_application, false) || try(var.app_engine.location, null) != null
    error_message = "app_engine.location must be set where create_application is true, for example europe-west."
  }

  validation {
    condition     = !try(var.app_engine.create_application, false) || try(var.app_engine.service, "") == "default"
    error_message = "app_engine.service must be default where create_application is true: an app's first service has that name."
  }
}

variable "cloud_run" {
  description = "On Cloud Run instead, for projects without App Engine: a container image of the republisher and the region."
  type = object({
    region        = string
    image         = string
    concurrency   = optional(number, 80)
    max_instances = optional(number, 10)
    memory        = optional(string, "512Mi")
  })
  default = null

  validation {
    condition     = (var.cloud_run == null) != (var.app_engine == null)
    error_message = "Exactly one of app_engine and cloud_run must be set."
  }

  validation {
    condition     = can(regex("^(2[3-9][0-9]|[3-9][0-9]{2}|[1-9][0-9]{3,})Mi$|^[1-9][0-9]*Gi$", try(var.cloud_run.memory, "512Mi")))
    error_message = "cloud_run.memory must be at least 230Mi, such as 512Mi or 1Gi: one message of 10 MB would not fit."
  }
}

variable "environment" {
  description = "More environment variables: NODE_OPTIONS, OTEL_SERVICE_NAME and the like. What other variables set is refused here."
  type        = map(string)
  default     = {}

  validation {
    condition = length([
      for name in keys(var.environment) : name if can(regex(
        "^(ALLOWED_TOPICS|COLLECTION_|DEAD_LETTER_|DELAY_|DRAINING_|FIRESTORE_|GAE_|GOOGLE_CLOUD_PROJECT|K_|MAX_BYTES_|OIDC_|PORT$|QUEUE_|REPUBLISHER_|TASKS_)", name
      ))
    ]) == 0
    error_message = "environment has a variable that the module or the platform sets itself: set allowed_topics, queues or firestore instead."
  }
}

variable "deletion_protection" {
  description = "Whether Terraform refuses to delete the service on Cloud Run."
  type        = bool
  default     = false
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
