variable "project_id" {
  description = "The project."
  type        = string
}

variable "project_number" {
  description = "Number of the project. Null: it is read, for which cloudresourcemanager.googleapis.com must be enabled."
  type        = string
  default     = null
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
  description = "Region of a new App Engine app, which is there for ever; null where the project has one, in the region of the queues, with a default service."
  type        = string
  default     = null
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

variable "redis_network" {
  description = "A network and a subnetwork in the region, where claims are to be kept in Redis as well as in Firestore."
  type = object({
    network    = string
    subnetwork = string
  })
  default = null
}
