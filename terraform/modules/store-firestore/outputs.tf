output "database" {
  description = "The new database; null where an existing one is used."
  value       = one(google_firestore_database.database)
}

output "firestore" {
  description = "As the modules guarantee and republisher take it."
  value = {
    database          = local.database
    collection_prefix = var.collection_prefix
  }
}
