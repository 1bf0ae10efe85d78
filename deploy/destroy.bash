# shellcheck shell=bash disable=SC2034,SC2154
# The other way round: part of gcloud.sh, which asks for nothing here but collects each command of a deployment in
# `deployed`. Each is then undone, the last one first: what is not listed below ends the run, so that nothing new is
# forgotten. What may hold messages or records is stopped and kept, with the command that would delete it.
#
# A run that is broken off is run again: what is gone already is passed over. A deployment afterwards goes on with what
# was kept.

deployed=() kept=() rehearsal=''

begin_destroying() {
  rehearsal=$dry dry=yes
  number=PROJECT_NUMBER
  if [ -z "$rehearsal" ]; then
    command -v gcloud >/dev/null || stop 'gcloud is not on the path: https://cloud.google.com/sdk/docs/install'
    active=$(gcloud config get-value project 2>/dev/null || true)
    [ "$active" = "$project" ] || stop "the active project is ${active:-not set}, not $project; run: gcloud config set project $project"
    number=$(gcloud projects describe "$project" --format='value(projectNumber)') || stop "the project $project cannot be read"
    nothing_left_behind
  fi
  # What the deployment would print is not wanted here.
  exec 6>&1 >/dev/null
}

# Queues, the republisher and the account that builds serve all functions of a deployment.
nothing_left_behind() {
  local found other entry
  found=$(services=() && value gcloud functions list --project="$project" --regions="$region" --format='value(name.basename(),buildConfig.entryPoint)')
  while read -r other entry; do
    case "$entry" in dedup | delay | fifo | pipeline | saga) ;; *) continue ;; esac
    [ -n "${kinds[$other]:-}" ] || stop "the function $other uses the same queues, republisher and accounts; give it as a --function as well"
  done <<<"$found"
}

finish_destroying() {
  exec >&6 6>&-
  # Nothing is young here: what an API that is off would hold is not there.
  services=() accounts=()
  local at each
  for each in "${deployed[@]}"; do
    eval "set -- $each"
    case "$*" in 'gcloud tasks queues create '*) undo_queue "$5" ;; esac
  done
  for ((at = ${#deployed[@]} - 1; at >= 0; at--)); do
    eval "set -- ${deployed[at]}"
    undo "$@"
  done
  printf '# kept: %s\n' "${kept[@]}"
}

gone() {
  shown "$@"
  if [ -n "$rehearsal" ]; then return 0; fi
  local answer
  if ask "$@"; then return 0; fi
  absent "$answer" || stop "$(shown "$@"): $answer"
}

# Policies and dashboards have numbers for names; the title is what is known.
gone_by_title() { # title, then the group of commands
  local title=$1 found each
  shift
  if [ -n "$rehearsal" ]; then
    gone "$@" delete "NAME_OF ${title}" --project="$project" --quiet
    return 0
  fi
  found=$(value "$@" list --project="$project" --filter="displayName=\"$title\"" --format='value(name)')
  for each in $found; do gone "$@" delete "$each" --project="$project" --quiet; done
}

undo_queue() { # ID
  gone gcloud tasks queues pause "$1" --project="$project" --location="$region"
  kept+=("the queue $1, paused: its tasks are messages that wait, for 31 days at most, and the name of a deleted queue cannot be used again for days; gcloud tasks queues delete $1 --project=$project --location=$region")
}

undo() { # a command of the deployment
  local words=("$@") title
  case "$*" in
    *' add-iam-policy-binding '*) gone "${words[@]/#add-iam-policy-binding/remove-iam-policy-binding}" ;;
    'gcloud alpha monitoring policies create '*)
      title=$(printf '%s\n' "$@" | sed -n 's/^--display-name=//p; s/^--policy={"displayName":"\([^"]*\)".*/\1/p')
      gone_by_title "$title" gcloud alpha monitoring policies
      ;;
    'gcloud monitoring dashboards create '*) gone_by_title pubsub-guarantees gcloud monitoring dashboards ;;
    'gcloud scheduler jobs create http '*) gone gcloud scheduler jobs delete "$6" --project="$project" --location="$region" --quiet ;;
    'gcloud eventarc triggers create '*)
      gone gcloud eventarc triggers delete "$5" --project="$project" "$(printf '%s\n' "$@" | grep '^--location=')" --quiet
      ;;
    'gcloud pubsub subscriptions create '*-push' '*)
      # As a pull subscription it keeps what waits, instead of counting attempts at what is not there any more.
      gone gcloud pubsub subscriptions modify-push-config "$5" --project="$project" --push-endpoint=
      kept+=("the subscription $5, as a pull subscription: messages wait in it, for $((message_retention / 86400)) days at most; gcloud pubsub subscriptions delete $5 --project=$project")
      ;;
    'gcloud functions deploy '*) gone gcloud functions delete "$4" --project="$project" --region="$region" --quiet ;;
    'gcloud run deploy '*) gone gcloud run services delete "$4" --project="$project" --region="$region" --quiet ;;
    'gcloud app deploy '*)
      if [ "$service" = default ]; then
        kept+=('the App Engine service default, which cannot be deleted; without requests it has no instances')
      else
        gone gcloud app services delete "$service" --project="$project" --quiet
      fi
      kept+=('the App Engine app, which cannot be deleted')
      ;;
    'gcloud secrets create '*) gone gcloud secrets delete "$4" --project="$project" --quiet ;;
    'gcloud iam service-accounts create '*) gone gcloud iam service-accounts delete "$(email "$5")" --project="$project" --quiet ;;
    'gcloud pubsub subscriptions create '*)
      kept+=("the subscription $5: dead letters wait in it, for 31 days at most; gcloud pubsub subscriptions delete $5 --project=$project")
      ;;
    'gcloud pubsub topics create '*) kept+=("the topic $5: others may publish and subscribe to it; gcloud pubsub topics delete $5 --project=$project") ;;
    'gcloud firestore databases create '*)
      kept+=("the database $database: what was processed, what waits, streams, schedules and sagas, with its delete protection; gcloud firestore databases update --database='$database' --no-delete-protection --project=$project, and then delete")
      ;;
    'gcloud redis instances create '*)
      kept+=("the Redis instance guarantees, which costs by the hour: without its claims what comes again is processed again; gcloud redis instances delete guarantees --project=$project --region=$region")
      ;;
    'gcloud iam roles create '*) kept+=("the role $5, which is granted to no account any more: the ID of a deleted role cannot be used again for weeks") ;;
    'gcloud services enable '*) kept+=('the APIs: others may use them') ;;
    # Part of what was undone above.
    'gcloud tasks queues create '* | 'gcloud firestore '* | 'gcloud beta services identity create '*) ;;
    *) stop "$* is not undone by anything: deploy/destroy.bash" ;;
  esac
}
