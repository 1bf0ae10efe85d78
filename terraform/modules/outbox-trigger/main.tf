# Eventarc tells a function of each row of the outbox as it is committed, so that the rows of a program that died are
# published within a second and not with the next sweep. The sweep stays: an event may be lost.

locals {
  account = "${var.function.name}-outbox"
}

resource "google_service_account" "outbox" {
  project      = var.project_id
  account_id   = local.account
  display_name = "Eventarc calls ${var.function.name} as this account"
}

# Not known when the function is made anew: then its grants are gone, and this one has to be made again.
resource "terraform_data" "function" {
  input = var.function.uri
}

resource "google_cloud_run_service_iam_member" "outbox" {
  project  = var.project_id
  location = var.region
  service  = var.function.name
  role     = "roles/run.invoker"
  member   = google_service_account.outbox.member

  lifecycle {
    replace_triggered_by = [terraform_data.function]
  }
}

# There is no smaller thing than the project to grant this on.
resource "google_project_iam_member" "receiver" {
  project = var.project_id
  role    = "roles/eventarc.eventReceiver"
  member  = google_service_account.outbox.member
}

resource "google_eventarc_trigger" "outbox" {
  project                 = var.project_id
  location                = var.location
  name                    = local.account
  labels                  = var.labels
  service_account         = google_service_account.outbox.email
  event_data_content_type = "application/protobuf"

  matching_criteria {
    attribute = "type"
    value     = "google.cloud.firestore.document.v1.created"
  }

  matching_criteria {
    attribute = "database"
    value     = var.firestore.database
  }

  matching_criteria {
    attribute = "document"
    value     = "${var.firestore.collection_prefix}-outbox-rows/{row}"
    operator  = "match-path-pattern"
  }

  destination {
    cloud_run_service {
      service = var.function.name
      region  = var.region
      path    = "/outbox"
    }
  }

  # An event that is refused for want of a right waits ten seconds for its next try.
  depends_on = [
    google_cloud_run_service_iam_member.outbox,
    google_project_iam_member.receiver,
  ]
}
