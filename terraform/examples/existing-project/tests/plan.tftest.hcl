mock_provider "google" {}

variables {
  project_number    = "123456789012"
  project_id        = "demo-project"
  source_topic      = "reminders"
  target_topic      = "reminders-due"
  bucket            = "sources-bucket"
  republisher_image = "europe-west1-docker.pkg.dev/demo-project/images/republisher"
}

run "is_planned" {
  command = plan

  assert {
    condition     = module.store.database == null && module.store.firestore.database == "(default)"
    error_message = "a database is created where one is there"
  }

  assert {
    condition     = module.republisher.cloud_run_service.ingress == "INGRESS_TRAFFIC_INTERNAL_ONLY"
    error_message = "the republisher can be reached from outside"
  }
}
