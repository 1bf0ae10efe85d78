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

variable "app_engine_location" {
  description = "Region of a new App Engine app, which is there for ever; null where the project has one, in the region of the queues. It may be left out once the app is there."
  type        = string
  default     = null
}

variable "app_engine_service" {
  description = "The App Engine service of the republisher: default in an app that has none yet, or another. Tasks that wait call the service that they were made for, so it stays the same."
  type        = string
}

variable "queues" {
  description = "IDs of the queues of delayed messages."
  type        = set(string)
  default     = ["delay-a", "delay-b"]
}

variable "draining_queues" {
  description = "IDs of queues that nothing new is sent to, and that are served until they are empty."
  type        = set(string)
  default     = []
}

variable "notification_channels" {
  description = "Full names of the channels that alerts go to."
  type        = list(string)
  default     = []
}

variable "outbox" {
  description = "Functions whose sweep also publishes what outboxes left behind, each with the IDs of the topics that this is for."
  type        = map(set(string))
  default     = {}
}

variable "saga" {
  description = "An orchestrator of sagas: the ID of its topic, of the topics of all steps, and the file with the definitions, which the package of functions must have (npm run package -- --sagas FILE). Null: none."
  type = object({
    topic  = optional(string, "saga")
    topics = set(string)
    module = optional(string, "sagas.js")
  })
  default = null
}

variable "outbox_triggers" {
  description = "Of the functions in `outbox`, and order-sagas, those that Eventarc tells of each row as it is committed; one is enough."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.outbox_triggers, concat(keys(var.outbox), var.saga == null ? [] : ["order-sagas"]))) == 0
    error_message = "outbox_triggers must be names that outbox has, or order-sagas with saga."
  }
}

variable "redis_network" {
  description = "A network and a subnetwork in the region, where claims are to be kept in Redis as well as in Firestore."
  type = object({
    network    = string
    subnetwork = string
  })
  default = null
}

variable "labels" {
  description = "Labels of all that can have them."
  type        = map(string)
  default     = {}
}

variable "kms_key" {
  description = "Key of Cloud KMS for topics, Firestore, Redis and secrets. Null: Google's."
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
  description = "Private pool of Cloud Build that functions are built in. Null: Google's own."
  type        = string
  default     = null
}
