# Alerts on what an operator has to act on, and a dashboard. What each alert means and what to do is in
# docs/operations.md, which the alert's own text says in short.

locals {
  queues = {
    for key, id in var.queues : key => { location = split("/", id)[3], name = split("/", id)[5] }
  }

  # Where the republisher's lines come from.
  republisher = {
    services = var.republisher == null ? [] : compact([var.republisher.app_engine, var.republisher.cloud_run])
    is_gae   = try(var.republisher.app_engine, null) != null
  }

  # By the `event` that a line has, and the services that write it, on Cloud Run or (`is_gae`) on App Engine.
  log_alerts = {
    blocked = {
      services   = sort(tolist(var.streams))
      is_gae     = false
      events     = ["order_blocked"]
      title      = "blocked streams"
      condition  = "A stream is blocked at a message that failed for good"
      severity   = "ERROR"
      auto_close = "604800s"
      content    = "The log line names the source, the key and the number. Remove the cause, then let the stream go on or skip the message: `npx pubsub-guarantees streams resume KEY --source SOURCE` or `skip`."
    }
    gaps = {
      services   = sort(tolist(var.streams))
      is_gae     = false
      events     = ["order_gap_old"]
      title      = "gaps"
      condition  = "A stream has waited for a missing number for longer than ORDER_GAP_TIMEOUT"
      severity   = "WARNING"
      auto_close = "3600s"
      content    = "The log line names the stream that has waited longest, and the number. Look for it in the dead letters, or at its publisher, and publish it again; or skip it: `npx pubsub-guarantees streams skip KEY NUMBER --source SOURCE`. The line comes with every sweep until none waits."
    }
    outbox = {
      services   = sort(tolist(var.outboxes))
      is_gae     = false
      events     = ["outbox_blocked", "outbox_failed"]
      title      = "outbox"
      condition  = "A row of the outbox could not be published, and what is behind it waits"
      severity   = "ERROR"
      auto_close = "604800s"
      content    = "`npx pubsub-guarantees outbox list` lists the streams that are blocked, and the rows without order that were set aside, each with the reason. Remove the cause, then `npx pubsub-guarantees outbox resume KEY`, pass the row with `skip KEY NUMBER`, or put a row without order back with `reopen ROW`; what the inbox left behind is among them."
    }
    parked = {
      services   = sort(tolist(var.sagas))
      is_gae     = false
      events     = ["saga_parked"]
      title      = "parked sagas"
      condition  = "A saga waits for an operator"
      severity   = "ERROR"
      auto_close = "604800s"
      content    = "The log line names the saga, its instance as a hash, and the problem; `npx pubsub-guarantees sagas list --parked` lists the instances. The saga goes on being tried. Mend the cause, then `npx pubsub-guarantees sagas retry SAGA ID`; where no participant can tell the outcome any more, `sagas settle`. See \"A saga that waits\" in docs/operations.md."
    }
    memory = {
      services   = sort(keys(var.functions))
      is_gae     = false
      events     = ["memory_full"]
      title      = "memory"
      condition  = "A function refuses deliveries, because too many bytes are in flight"
      severity   = "WARNING"
      auto_close = "3600s"
      content    = "Refused deliveries come again, and each refusal counts as a delivery attempt: where this goes on, messages become dead letters. Raise `service.memory`, or lower `service.concurrency` so that there are more instances. See \"Too many bytes at once\" in docs/operations.md."
    }
    republisher_memory = {
      services   = local.republisher.services
      is_gae     = local.republisher.is_gae
      events     = ["memory_full"]
      title      = "memory of the republisher"
      condition  = "The republisher refuses tasks, because too many bytes are in flight"
      severity   = "WARNING"
      auto_close = "3600s"
      content    = "Nothing is lost: the queue sends each task again, and its message is late. Give the republisher a larger instance class, or more memory. See \"Too many bytes at once\" in docs/operations.md."
    }
    refused = {
      services   = local.republisher.services
      is_gae     = local.republisher.is_gae
      events     = ["topic_not_allowed", "caller_refused"]
      title      = "refused tasks"
      condition  = "The republisher refuses a task for its topic, or for its caller"
      severity   = "ERROR"
      auto_close = "3600s"
      content    = "Nothing is lost: the queue sends each task again, and its message is late until the list is corrected. `topic_not_allowed`: the log line names the topic; add it to `allowed_topics` of the module republisher, or delete the task if none of your services made it. `caller_refused`: the line says why; the audience or the account is not the one that the functions make their tasks with."
    }
  }
}

resource "google_monitoring_alert_policy" "backlog" {
  for_each = var.functions

  project               = var.project_id
  display_name          = "${var.name}: backlog of ${each.key}"
  combiner              = "OR"
  severity              = "ERROR"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = "The oldest message is older than ${each.value.oldest_age_seconds} s"

    condition_threshold {
      filter          = "resource.type = \"pubsub_subscription\" AND resource.labels.subscription_id = \"${each.value.subscription}\" AND metric.type = \"pubsub.googleapis.com/subscription/oldest_unacked_message_age\""
      comparison      = "COMPARISON_GT"
      threshold_value = each.value.oldest_age_seconds
      duration        = "120s"

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_MAX"
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "Messages of ${each.value.subscription} are refused, or come faster than they are handled. Look at the warnings and errors in the log of the function ${each.key}: a store or a target that is down, or a handler that fails. Nothing is lost until the subscription's retention ends."
  }
}

resource "google_monitoring_alert_policy" "dead_letters" {
  for_each = var.dead_letter_subscriptions

  project               = var.project_id
  display_name          = "${var.name}: dead letters of ${each.key}"
  combiner              = "OR"
  severity              = "WARNING"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = "There are dead letters"

    condition_threshold {
      filter          = "resource.type = \"pubsub_subscription\" AND resource.labels.subscription_id = \"${each.value}\" AND metric.type = \"pubsub.googleapis.com/subscription/num_undelivered_messages\""
      comparison      = "COMPARISON_GT"
      threshold_value = 0
      duration        = "0s"

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_MAX"
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "Messages that could not be processed are kept in ${each.value} for 31 days. Their attribute `deadLetterReason` says why; without it, Pub/Sub dead-lettered the message after the last attempt. Remove the cause and publish them again."
  }
}

resource "google_monitoring_alert_policy" "lateness" {
  for_each = local.queues

  project               = var.project_id
  display_name          = "${var.name}: lateness of ${each.key}"
  combiner              = "OR"
  severity              = "WARNING"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = "Of 100 calls one is more than ${var.lateness_seconds} s late"

    condition_threshold {
      filter          = "resource.type = \"cloud_tasks_queue\" AND resource.labels.queue_id = \"${each.value.name}\" AND resource.labels.location = \"${each.value.location}\" AND metric.type = \"cloudtasks.googleapis.com/queue/task_attempt_delays\""
      comparison      = "COMPARISON_GT"
      threshold_value = var.lateness_seconds * 1000
      duration        = "300s"

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_PERCENTILE_99"
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "The queue ${each.value.name} does not keep up: tasks are called later than they should be. Look at the queue's depth and at the republisher's instances; where these are few and well, the queue's rate is too low: add a queue. Calls that the republisher refuses do not count here: each comes again at a time of its own."
  }
}

# A republisher that is dead, or that refuses everything: source messages are acknowledged already, an answer of 5xx is
# no line of the log, and the delays above do not count what is tried again. How Cloud Tasks writes an answer of 2xx is
# documented nowhere: as a number, or as ok.
resource "google_monitoring_alert_policy" "attempts" {
  for_each = local.queues

  project               = var.project_id
  display_name          = "${var.name}: failing calls of ${each.key}"
  combiner              = "OR"
  severity              = "ERROR"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = "Calls of the queue have failed in each of five minutes"

    condition_threshold {
      filter          = "resource.type = \"cloud_tasks_queue\" AND resource.labels.queue_id = \"${each.value.name}\" AND resource.labels.location = \"${each.value.location}\" AND metric.type = \"cloudtasks.googleapis.com/queue/task_attempt_count\" AND metric.labels.response_code != monitoring.regex.full_match(\"2[0-9][0-9]|ok|OK\")"
      comparison      = "COMPARISON_GT"
      threshold_value = 0
      duration        = "300s"

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_SUM"
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "The republisher does not take what the queue ${each.value.name} sends: delayed messages are late, and none is lost while its task is in the queue. Look at the codes in the dashboard and at the republisher's log. 403: its topics or its caller. 404: the service is not there. 429 or 503: its memory, or Pub/Sub. Others: it is down, or its App Engine application is disabled. See \"A republisher that does not answer\" in docs/operations.md."
  }
}

# Of all tasks, those included that wait for their time: there is no metric of those that are due.
resource "google_monitoring_alert_policy" "depth" {
  for_each = var.depth_tasks == null ? {} : local.queues

  project               = var.project_id
  display_name          = "${var.name}: depth of ${each.key}"
  combiner              = "OR"
  severity              = "WARNING"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = "The queue holds more than ${var.depth_tasks} tasks"

    condition_threshold {
      filter          = "resource.type = \"cloud_tasks_queue\" AND resource.labels.queue_id = \"${each.value.name}\" AND resource.labels.location = \"${each.value.location}\" AND metric.type = \"cloudtasks.googleapis.com/queue/depth\""
      comparison      = "COMPARISON_GT"
      threshold_value = var.depth_tasks
      duration        = "300s"

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_MAX"
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "The queue ${each.value.name} holds more tasks than expected: more messages wait for their time, or what is due is not called (a paused queue, a republisher that does not answer). Where so many wait on purpose, raise `depth_tasks`."
  }
}

# Only sweeps find failed messages of streams, lost tasks and gaps: without them the alerts on streams are silent as well.
resource "google_monitoring_alert_policy" "sweep_failures" {
  count = length(var.sweeps) == 0 ? 0 : 1

  project               = var.project_id
  display_name          = "${var.name}: failing sweeps"
  combiner              = "OR"
  severity              = "ERROR"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = "Cloud Scheduler could not call a sweep, or the sweep failed"

    condition_matched_log {
      filter = join(" AND ", [
        "resource.type = \"cloud_scheduler_job\"",
        "resource.labels.job_id = (${join(" OR ", [for job in sort(tolist(var.sweeps)) : "\"${job}\""])})",
        "severity = \"ERROR\"",
      ])
    }
  }

  alert_strategy {
    auto_close = "1800s"

    notification_rate_limit {
      period = "3600s"
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "What a sweep would have found waits for the next one: failed messages of streams, lost tasks, rows of an outbox, and the alerts on streams and gaps. The log of the job has the code that it was answered, the log of the function has `the sweep failed` with the reason. See \"A sweep that fails or does not run\" in docs/operations.md."
  }
}

resource "google_monitoring_alert_policy" "sweep_absent" {
  for_each = var.sweeps

  project               = var.project_id
  display_name          = "${var.name}: no ${each.value}"
  combiner              = "OR"
  severity              = "ERROR"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = "The job has not run for 15 minutes"

    condition_absent {
      # Each run writes a line when it begins.
      filter   = "resource.type = \"cloud_scheduler_job\" AND resource.labels.job_id = \"${each.value}\" AND metric.type = \"logging.googleapis.com/log_entry_count\" AND metric.labels.severity = \"INFO\""
      duration = "900s"

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_SUM"
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "The job ${each.value} of Cloud Scheduler is paused, deleted, or its region is down. `gcloud scheduler jobs resume ${each.value} --location=REGION`, or apply again. See \"A sweep that fails or does not run\" in docs/operations.md."
  }
}

# A disabled application refuses every call of the queue and says so nowhere else. The line of the audit log comes with
# every change, by a person or a program.
resource "google_monitoring_alert_policy" "app" {
  count = local.republisher.is_gae ? 1 : 0

  project               = var.project_id
  display_name          = "${var.name}: App Engine application"
  combiner              = "OR"
  severity              = "WARNING"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = "The App Engine application was changed: it may be disabled"

    condition_matched_log {
      filter = join(" AND ", [
        "resource.type = \"gae_app\"",
        "protoPayload.serviceName = \"appengine.googleapis.com\"",
        "protoPayload.methodName = (\"google.appengine.v1.Applications.UpdateApplication\" OR \"google.appengine.v1beta.Applications.UpdateApplication\")",
      ])
    }
  }

  alert_strategy {
    auto_close = "1800s"

    notification_rate_limit {
      period = "3600s"
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "The App Engine application was changed. Where `gcloud app describe --format='value(servingStatus)'` says other than SERVING, the republisher is not called, and delayed messages wait in their queue: enable the application in its settings."
  }
}

# By lines of the log: no metric has to be made of them, which an alert would not accept for minutes.
resource "google_monitoring_alert_policy" "log" {
  for_each = { for key, alert in local.log_alerts : key => alert if length(alert.services) > 0 }

  project               = var.project_id
  display_name          = "${var.name}: ${each.value.title}"
  combiner              = "OR"
  severity              = each.value.severity
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = each.value.condition

    condition_matched_log {
      filter = join(" AND ", [
        "resource.type = \"${each.value.is_gae ? "gae_app" : "cloud_run_revision"}\"",
        "resource.labels.${each.value.is_gae ? "module_id" : "service_name"} = (${join(" OR ", [for name in each.value.services : "\"${name}\""])})",
        "jsonPayload.event = (${join(" OR ", [for event in each.value.events : "\"${event}\""])})",
      ])
    }
  }

  alert_strategy {
    auto_close = each.value.auto_close

    notification_rate_limit {
      period = "3600s"
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = each.value.content
  }
}

resource "google_monitoring_dashboard" "dashboard" {
  count = var.create_dashboard ? 1 : 0

  project = var.project_id
  dashboard_json = templatefile("${path.module}/dashboard.json.tftpl", {
    name          = var.name
    functions     = join("|", sort(keys(var.functions)))
    subscriptions = join("|", sort([for function in values(var.functions) : function.subscription]))
    dead_letters  = join("|", sort(values(var.dead_letter_subscriptions)))
    queues        = join("|", concat(sort([for queue in values(local.queues) : queue.name]), length(local.queues) == 0 ? ["none"] : []))
  })
}
