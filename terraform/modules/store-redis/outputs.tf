output "instance" {
  description = "The instance. Its password is in it."
  value       = google_redis_instance.claims
  sensitive   = true
}

output "secrets" {
  description = "IDs of the secrets with the URL and the certificates, and where the instance is, as `redis` of the module guarantee takes them. Their versions exist once this is known."
  value = {
    url_secret = google_secret_manager_secret.url.secret_id
    ca_secret  = google_secret_manager_secret.ca.secret_id
    region     = var.region
  }

  depends_on = [google_secret_manager_secret_version.url, google_secret_manager_secret_version.ca]
}
