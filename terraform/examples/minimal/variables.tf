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
