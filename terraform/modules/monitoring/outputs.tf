output "alerts" {
  description = "The alert policies, by what they are about and their key."
  value = merge(
    { for key, policy in google_monitoring_alert_policy.backlog : "backlog/${key}" => policy },
    { for key, policy in google_monitoring_alert_policy.dead_letters : "dead-letters/${key}" => policy },
    { for key, policy in google_monitoring_alert_policy.lateness : "lateness/${key}" => policy },
    { for key, policy in google_monitoring_alert_policy.attempts : "attempts/${key}" => policy },
    { for key, policy in google_monitoring_alert_policy.depth : "depth/${key}" => policy },
    { for policy in google_monitoring_alert_policy.sweep_failures : "sweeps/failures" => policy },
    { for key, policy in google_monitoring_alert_policy.sweep_absent : "sweeps/${key}" => policy },
    { for policy in google_monitoring_alert_policy.app : "app-engine/application" => policy },
    { for key, policy in google_monitoring_alert_policy.log : "log/${key}" => policy },
  )
}

output "dashboard" {
  description = "The dashboard; null where none is created."
  value       = one(google_monitoring_dashboard.dashboard)
}
