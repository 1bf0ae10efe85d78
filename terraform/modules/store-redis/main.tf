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
  customer_managed_key    = var.kms_key

  redis_configs = {
    "maxmemory-policy" = "noeviction"
  }
}

resource "google_secret_manager_secret" "url" {
  project   = var.project_id
  labels    = var.labels
  secret_id = "${var.name}-redis-url"

  replication {
    dynamic "auto" {
      for_each = length(var.secret_regions) == 0 ? [true] : []

      content {}
    }

    dynamic "user_managed" {
      for_each = length(var.secret_regions) == 0 ? [] : [var.secret_regions]

      content {
        dynamic "replicas" {
          for_each = user_managed.value

          content {
            location = replicas.value

            dynamic "customer_managed_encryption" {
              for_each = var.kms_key == null ? [] : [var.kms_key]

              content {
                kms_key_name = customer_managed_encryption.value
              }
            }
          }
        }
      }
    }
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
    dynamic "auto" {
      for_each = length(var.secret_regions) == 0 ? [true] : []

      content {}
    }

    dynamic "user_managed" {
      for_each = length(var.secret_regions) == 0 ? [] : [var.secret_regions]

      content {
        dynamic "replicas" {
          for_each = user_managed.value

          content {
            location = replicas.value

            dynamic "customer_managed_encryption" {
              for_each = var.kms_key == null ? [] : [var.kms_key]

              content {
                kms_key_name = customer_managed_encryption.value
              }
            }
          }
        }
      }
    }
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
