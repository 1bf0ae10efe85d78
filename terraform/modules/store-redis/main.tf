# Memorystore for Redis as a claim store: with AUTH, with TLS, and without eviction, because a record that is evicted
# lets its message run again. Password and certificates go to the functions by Secret Manager; they are in Terraform's
# state too, which is to be kept as a secret.

resource "google_redis_instance" "claims" {
  project                 = var.project_id
  labels                  = var.labels
  region                  = var.region
  name                    = var.name
  tier                    = var.tier
  memory_size_gb          = var.memory_size_gb
  redis_version           = var.redis_version
  authorized_network      = var.network
  connect_mode            = var.connect_mode
  auth_enabled            = true
  transit_encryption_mode = "SERVER_AUTHENTICATION"
  deletion_protection     = var.deletion_protection

  redis_configs = {
    "maxmemory-policy" = "noeviction"
  }
}

resource "google_secret_manager_secret" "url" {
  project   = var.project_id
  labels    = var.labels
  secret_id = "${var.name}-redis-url"

  replication {
    auto {}
  }
}

resource "google_secret_manager_secret_version" "url" {
  secret      = google_secret_manager_secret.url.id
  secret_data = "rediss://:${google_redis_instance.claims.auth_string}@${google_redis_instance.claims.host}:${google_redis_instance.claims.port}"

  # Functions read the latest: the old one stays until there is a new one.
  lifecycle {
    create_before_destroy = true
  }
}

resource "google_secret_manager_secret" "ca" {
  project   = var.project_id
  labels    = var.labels
  secret_id = "${var.name}-redis-ca"

  replication {
    auto {}
  }
}

# Several while they are rotated.
resource "google_secret_manager_secret_version" "ca" {
  secret      = google_secret_manager_secret.ca.id
  secret_data = join("\n", google_redis_instance.claims.server_ca_certs[*].cert)

  lifecycle {
    create_before_destroy = true
  }
}
