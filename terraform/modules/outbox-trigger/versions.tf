terraform {
  required_version = ">= 1.9"

  required_providers {
    google = {
      source = "hashicorp/google"
      # From 7.26 on a function may be given direct VPC egress.
      version = ">= 7.26, < 8"
    }
  }
}
