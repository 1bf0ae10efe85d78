#!/usr/bin/env bash
# Deploys what terraform/examples/complete deploys, with gcloud alone. What is there already is updated, or left as it
# is; a run that was broken off is run again. Everything is checked before anything is changed, and nothing is deleted
# but with --destroy, which takes away what runs, and keeps what holds messages (destroy.bash).
set -euo pipefail

if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
  printf 'deploy/gcloud.sh: this is bash %s; 4.4 or later is needed\n' "$BASH_VERSION" >&2
  exit 1
fi
# The script may run unattended: where gcloud would ask, it fails or takes what it proposes.
export CLOUDSDK_CORE_DISABLE_PROMPTS=1

usage() {
  cat <<'TEXT'
usage: deploy/gcloud.sh --project P --region R --function NAME:KIND:SOURCE:TARGET … [options]

  --function NAME:KIND:SOURCE:TARGET  a function; KIND is dedup, delay, fifo or pipeline; SOURCE and TARGET are topic IDs.
                                      May be given several times. NAME:saga:TOPIC:STEP,STEP is an orchestrator of sagas:
                                      its own topic, and the topics that the steps of its definitions name
  --packages FOLDER                   what npm run package made (default: build)
  --queues A,B                        queues for delay, pipeline and saga (default: delay)
  --wake-queue Q                      queue that wakes streams of fifo and pipeline whose next message failed (default: wake)
  --republisher app-engine|cloud-run  where the republisher runs (default: app-engine)
  --app-engine-service S              its service there (default: republisher; the first one of an app must be default)
  --database D                        Firestore database (default: pubsub-guarantees)
  --existing-database                 it must be there already, and is not created
  --existing-topics                   the topics must be there already, and are not created
  --build-account EMAIL               an account that builds; without it one is made
  --prefix P                          first part of the collections' names (default: pubsub-guarantees)
  --redis NETWORK:SUBNETWORK          dedup functions keep their claims in a Memorystore for Redis, which is made and reached
                                      through this network; the subnetwork is in the region and has /26 or more
  --outbox NAME:TOPIC,TOPIC           the sweep of the function NAME also publishes what outboxes left behind for these topics
  --outbox-trigger NAME               Eventarc tells NAME, with --outbox or of kind saga, of each row as it is committed
  --env NAME:VARIABLE=VALUE           one more variable of the function NAME (docs/reference.md lists them), several times
  --runtime R                         nodejs22 or nodejs24 (default: nodejs22)
  --notification-channels A,B         full names of the channels that alerts go to
  --no-monitoring                     no alerts, no dashboard
  --enable-services                   enable the APIs that are missing, instead of stopping
  --destroy                           with the options of the deployment: take away what runs and its rights; what may hold
                                      messages or records is kept, stopped and named
  --dry-run                           print every command that an empty project would need, and run none; with --destroy,
                                      every command that would take away
TEXT
}

stop() {
  printf 'deploy/gcloud.sh: %s\n' "$*" >&2
  exit 1
}

# --- what is asked for

project='' region='' packages=build queues=delay wake_queue=wake republisher=app-engine service=republisher
database=pubsub-guarantees prefix=pubsub-guarantees runtime=nodejs22 build_account='' channels=''
new_database=yes new_topics=yes monitoring=yes enable='' dry='' redis='' destroy=''
functions=() outboxes=() triggers=() variables=()

while [ $# -gt 0 ]; do
  case "$1" in --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;; esac
  case "$1" in
    --project | --region | --function | --packages | --queues | --wake-queue | --republisher | --app-engine-service | --database | \
      --build-account | --prefix | --runtime | --notification-channels | --redis | --outbox | --outbox-trigger | --env)
      # What looks like an option is one whose value was forgotten; --dry-run must not get lost so.
      case "${2:-}" in '' | --*) stop "$1 needs a value" ;; esac
      case "$1" in
        --project) project=$2 ;;
        --region) region=$2 ;;
        --function) functions+=("$2") ;;
        --packages) packages=$2 ;;
        --queues) queues=$2 ;;
        --wake-queue) wake_queue=$2 ;;
        --republisher) republisher=$2 ;;
        --app-engine-service) service=$2 ;;
        --database) database=$2 ;;
        --build-account) build_account=$2 ;;
        --prefix) prefix=$2 ;;
        --runtime) runtime=$2 ;;
        --notification-channels) channels=$2 ;;
        --redis) redis=$2 ;;
        --outbox) outboxes+=("$2") ;;
        --outbox-trigger) triggers+=("$2") ;;
        --env) variables+=("$2") ;;
      esac
      shift 2
      ;;
    --existing-database) new_database='' && shift ;;
    --existing-topics) new_topics='' && shift ;;
    --no-monitoring) monitoring='' && shift ;;
    --enable-services) enable=yes && shift ;;
    --destroy) destroy=yes && shift ;;
    --dry-run) dry=yes && shift ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && stop "unknown option $1" ;;
  esac
done

matches() { [[ "$1" =~ $2 ]]; }

[ -n "$project" ] || stop '--project is not set; accepted: the ID of a project'
[ -n "$region" ] || stop '--region is not set; accepted: a region such as europe-west1'
[ ${#functions[@]} -gt 0 ] || stop '--function is not set; accepted: NAME:KIND:SOURCE:TARGET'
matches "$project" '^[a-z][a-z0-9.:-]{4,62}$' || stop "--project is $project; accepted: the ID of a project"
matches "$region" '^[a-z]+-[a-z]+[0-9]+$' || stop "--region is $region; accepted: a region such as europe-west1"
matches "$republisher" '^(app-engine|cloud-run)$' || stop "--republisher is $republisher; accepted: app-engine or cloud-run"
matches "$runtime" '^nodejs(22|24)$' || stop "--runtime is $runtime; accepted: nodejs22 or nodejs24"
matches "$database" '^(\(default\)|[a-z][a-z0-9-]{2,61}[a-z0-9])$' || stop "--database is $database; accepted: (default), or 4 to 63 lower-case letters, digits and hyphens"
matches "$prefix" '^[A-Za-z][A-Za-z0-9-]{0,99}$' || stop "--prefix is $prefix; accepted: letters, digits and hyphens, beginning with a letter"
matches "$service" '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' || stop "--app-engine-service is $service; accepted: the ID of a service"
matches "$queues" '^[A-Za-z0-9-]+(,[A-Za-z0-9-]+)*$' || stop "--queues is $queues; accepted: IDs with commas between"
matches "$wake_queue" '^[A-Za-z0-9-]{1,80}$' || stop "--wake-queue is $wake_queue; accepted: the ID of a queue"
[[ ",$queues," != *",$wake_queue,"* ]] || stop "--wake-queue is $wake_queue; accepted: another than --queues, because it stops trying soon"

matches "$queues" '^[^,]{1,100}(,[^,]{1,100})*$' || stop "--queues is $queues; accepted: IDs of at most 100 characters"
[ -z "$build_account" ] || matches "$build_account" '^[^@/[:space:]]+@[^@/[:space:]]+$' || stop "--build-account is $build_account; accepted: the e-mail of a service account"
[ -z "$channels" ] || matches "$channels" '^projects/[^/,[:space:]]+/notificationChannels/[^/,[:space:]]+(,projects/[^/,[:space:]]+/notificationChannels/[^/,[:space:]]+)*$' || stop "--notification-channels is $channels; accepted: projects/P/notificationChannels/N, with commas between"
[ -z "$redis" ] || matches "$redis" '^[a-z]([a-z0-9-]{0,61}[a-z0-9])?:[a-z]([a-z0-9-]{0,61}[a-z0-9])?$' || stop "--redis is $redis; accepted: NETWORK:SUBNETWORK"

names=() topics=() targets=() delayed='' streams=() sagas=() on_redis=''
declare -A kinds=() outbox=() environment=()
# The file with the definitions of sagas; --env NAME:SAGA_MODULE=FILE names another one.
definitions=sagas.js
unique() { # of the words given, in order
  local word seen=' '
  for word in "$@"; do
    [[ "$seen" == *" $word "* ]] || printf '%s\n' "$word"
    seen+="$word "
  done
}
topic_id() { matches "$1" '^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$' && ! matches "$1" '^goog'; }
for function in "${functions[@]}"; do
  IFS=: read -r name kind source target rest <<<"$function"
  accepted='accepted: NAME:KIND:SOURCE:TARGET'
  if [ -z "${target:-}" ] || [ -n "${rest:-}" ]; then stop "--function is $function; $accepted"; fi
  matches "$name" '^[a-z][a-z0-9-]{1,18}[a-z0-9]$' || stop "--function is $function; the name must have 3 to 20 lower-case letters, digits and hyphens"
  matches "$kind" '^(dedup|delay|fifo|pipeline|saga)$' || stop "--function is $function; the kind must be dedup, delay, fifo, pipeline or saga"
  reached=("$target")
  [ "$kind" != saga ] || IFS=, read -ra reached <<<"$target"
  for topic in "$source" "${reached[@]}"; do
    topic_id "$topic" || stop "--function is $function; $topic is not the ID of a topic: 3 to 255 letters, digits and -._~+%, the first a letter, not goog…"
    [ "$topic" != "$name-dead-letters" ] || stop "--function is $function; $topic is where its own dead letters go"
  done
  for topic in "${reached[@]}"; do
    [ "$source" != "$topic" ] || stop "--function is $function; a message that is published to where it came from comes round for ever"
  done
  [[ " ${names[*]:-} " != *" $name "* ]] || stop "--function: the name $name is given twice"
  names+=("$name")
  kinds[$name]=$kind
  topics+=("$source" "${reached[@]}")
  [ "$kind" != dedup ] || on_redis=$redis
  case "$kind" in
    delay) delayed=yes && targets+=("$target") ;;
    pipeline | saga) delayed=yes && targets+=("$source") ;;
  esac
  case "$kind" in
    fifo | pipeline) streams+=("$name") ;;
    # Its commands and timers are rows of its commits, and its sweep publishes what is left of them.
    saga) sagas+=("$name") && outbox[$name]=" $source ${reached[*]} " ;;
  esac
done
mapfile -t topics < <(unique "${topics[@]}")
[ -z "$delayed" ] || mapfile -t targets < <(unique "${targets[@]}" | LC_ALL=C sort)
[ -z "$delayed" ] || [ -z "${kinds[republisher]:-}" ] || stop '--function: the name republisher is that of the republisher'
mapfile -t twins < <(tr , '\n' <<<"$queues" | LC_ALL=C sort | uniq -d)
[ ${#twins[@]} -eq 0 ] || stop "--queues: ${twins[0]} is given twice"
[ -z "$redis" ] || [ -n "$on_redis" ] || stop '--redis is for dedup functions, and there is none'

for each in "${outboxes[@]}"; do
  name=${each%%:*} list=${each#*:}
  [ "$name" != "$each" ] || list=''
  [ -n "${kinds[$name]:-}" ] || stop "--outbox is $each; accepted: NAME:TOPIC,TOPIC with the name of a --function"
  for topic in ${list//,/ }; do topic_id "$topic" || stop "--outbox is $each; $topic is not the ID of a topic: 3 to 255 letters, digits and -._~+%, the first a letter, not goog…"; done
  IFS=, read -ra more <<<"$list"
  read -ra before <<<"${outbox[$name]:-}"
  mapfile -t several < <(unique "${before[@]}" "${more[@]}")
  outbox[$name]=" ${several[*]} "
  # A gap is repaired through the function's own source.
  case "${kinds[$name]}" in fifo | pipeline)
    for function in "${functions[@]}"; do
      IFS=: read -r other kind source target <<<"$function"
      if [ "$other" = "$name" ] && [[ "${outbox[$name]}" != *" $source "* ]]; then outbox[$name]+="$source "; fi
    done
    ;;
  esac
done
for name in "${triggers[@]}"; do
  [ -n "${outbox[$name]:-}" ] || stop "--outbox-trigger is $name; accepted: the name of a function with --outbox, or of kind saga"
done
ours=' COLLECTION_PREFIX CONSUMER DEAD_LETTER_TOPIC DEDUP_LEASE DEDUP_RETENTION DEDUP_STORE DELAY_PAYLOADS DELAY_QUEUE DELAY_QUEUES FIRESTORE_DATABASE FUNCTION_TARGET FUNCTION_TIMEOUT GOOGLE_CLOUD_PROJECT HANDLER_TIMEOUT LOG_EXECUTION_ID MAX_BYTES_IN_FLIGHT NODE_EXTRA_CA_CERTS ORDER_LEASE OUTBOX REDIS_URL REPUBLISHER_SERVICE REPUBLISHER_SERVICE_ACCOUNT REPUBLISHER_URL SAGA_TOPIC SOURCE_SUBSCRIPTION SOURCE_TOPIC TARGET_TOPIC TASKS_LOCATION WAKE_QUEUE WAKE_SERVICE_ACCOUNT WAKE_URL '
accepts() { # variable, the kind of its function: its kinds of function, and its values
  case "$1" in
    CHECK_WINDOWS | STRICT_ATTRIBUTES) printf '. ^(on|off)$' ;;
    LOG_LEVEL) printf '. ^(info|debug)$' ;;
    COLD_START) printf '. ^plain$' ;;
    COUNTER_SCOPE | NODE_OPTIONS | OTEL_*) printf '. .' ;;
    DEDUP_ON_CONFLICT) if [ "$2" = saga ]; then printf 'saga ^(deadLetter|ack)$'; else printf 'dedup|pipeline ^(deadLetter|ack|process)$'; fi ;;
    DEDUP_ON_STORE_UNAVAILABLE) printf 'dedup|pipeline ^(retry|process)$' ;;
    DELAY_LEDGER) printf 'delay|pipeline|saga ^(keys|all|off)$' ;;
    ORDER_ON_GAP) printf 'fifo|pipeline ^(wait|skip)$' ;;
    ORDER_GAP_TIMEOUT) printf 'fifo|pipeline ^[0-9]+(s|m|h|d)$' ;;
    ORDER_MAX_ATTEMPTS) printf 'fifo|pipeline ^[1-9][0-9]*$' ;;
    ORDER_ON_UNKNOWN_STALE) printf 'fifo|pipeline ^(deadLetter|ack)$' ;;
    ORDER_ON_POISON) printf 'fifo|pipeline ^(block|skip)$' ;;
    ORDER_SCOPE) printf 'fifo|pipeline ^(source|consumer)$' ;;
    ORDER_START) printf 'fifo|pipeline ^([1-9][0-9]*|counter)$' ;;
    OUTBOX_SHARDS) printf '. ^([1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-6])$' ;;
    SAGA_MODULE) printf 'saga ^[A-Za-z0-9_-][A-Za-z0-9._/-]*\\.m?js$' ;;
    REDIS_PREFIX) printf 'dedup ^[^[:space:]]{1,100}$' ;;
  esac
}
for each in "${variables[@]}"; do
  matches "$each" '^[a-z][a-z0-9-]*:[A-Z][A-Z0-9_]*=[^;]*$' || stop "--env is $each; accepted: NAME:VARIABLE=VALUE, without a semicolon in it"
  name=${each%%:*} setting=${each#*:}
  [ -n "${kinds[$name]:-}" ] || stop "--env is $each; there is no --function $name"
  [[ "$ours" != *" ${setting%%=*} "* ]] || stop "--env is $each; ${setting%%=*} is set by the script itself"
  read -r of values <<<"$(accepts "${setting%%=*}" "${kinds[$name]}")"
  [ -n "${values:-}" ] || stop "--env is $each; no function reads ${setting%%=*}; docs/reference.md lists what they read"
  matches "${kinds[$name]}" "$of" || stop "--env is $each; ${setting%%=*} is for ${of//|/ and }, and $name is ${kinds[$name]}"
  matches "${setting#*=}" "$values" || stop "--env is $each; accepted: a value like $values"
  environment[$name]+="$setting;"
done

module_of() { # a function saga
  local file=$definitions
  if [[ ";${environment[$1]:-}" == *';SAGA_MODULE='* ]]; then
    file=${environment[$1]#*SAGA_MODULE=}
    file=${file%%;*}
  fi
  printf '%s' "$file"
}

# Limits that fit each other: terraform/modules/policy says which must fit which.
handler_timeout=60 function_timeout=70 ack_deadline=90 attempts=20 minimum_backoff=10 maximum_backoff=600
message_retention=604800 dedup_lease=30 dedup_retention=691200 order_lease=60

services=(artifactregistry cloudbuild cloudfunctions cloudresourcemanager cloudscheduler cloudtasks firestore iam logging monitoring pubsub run storage)
[ -z "$delayed" ] || [ "$republisher" = cloud-run ] || services+=(appengine)
[ -z "$redis" ] || services+=(redis secretmanager)
[ ${#triggers[@]} -eq 0 ] || services+=(eventarc eventarcpublishing)

# --- running, or printing

shown() { # a command as one line that a shell reads as it is
  local line
  printf -v line '%q ' "$@"
  printf '%s\n' "${line% }"
}

run() {
  if [ -n "$destroy" ]; then
    deployed+=("$(shown "$@")")
    return 0
  fi
  shown "$@"
  [ -z "$dry" ] || return 0
  local tries=0 said
  until { said=$("$@" 2>&1 >&3 | tee >(cat >&2)); } 3>&1; do
    young "$said" && [ $((tries += 1)) -le "$patience" ] || return 1
    printf '# not there yet: again in %s s\n' "$pause"
    sleep "$pause"
  done
}

# What a command answers, in $answer. Fails as the command does, once nothing that is young can be the reason.
ask() {
  local tries=0
  until answer=$("$@" 2>&1); do
    young "$answer" && [ $((tries += 1)) -le "$patience" ] || return 1
    sleep "$pause"
  done
}

# Whether a thing is there. An answer that is neither yes nor "not found" ends the run: it may be there.
there() {
  [ -z "$dry" ] || return 1
  local answer
  if ask "$@"; then return 0; fi
  absent "$answer" || stop "$(shown "$@"): $answer"
  return 1
}

# What a command answers; nothing where the thing is not there. Any other failure ends the run.
value() {
  local answer
  if ask "$@"; then
    printf '%s' "$answer"
  else
    absent "$answer" || stop "$(shown "$@"): $answer"
  fi
}

# Where an API is off nothing of its kind can be there. gcloud asks whether to turn it on; without a terminal it fails.
disabled='SERVICE_DISABLED|has not been used in project'
absent() {
  ! young "$1" || return 1
  matches "${1,,}" 'not[ _]found|does not exist|httperror 404|does not contain an app engine application' || matches "$1" "$disabled"
}

# An API that was only just enabled goes on refusing for some minutes, and an account that was only just made is not
# known to every other API at once: the command is run again, for five minutes at most.
patience=30 pause=10 accounts=()
young() { # what a command said
  local each
  if matches "$1" "$disabled"; then
    for each in "${services[@]}"; do
      if matches "$1" "(^|[^a-z])$each\\.googleapis\\.com"; then return 0; fi
    done
  fi
  if matches "${1,,}" 'not (exist|found)'; then
    for each in "${accounts[@]}"; do
      if [[ "$1" == *"$each"* ]]; then return 0; fi
    done
  fi
  return 1
}

if [ -n "$destroy" ]; then
  # shellcheck source=deploy/destroy.bash
  source "$(dirname "${BASH_SOURCE[0]}")/destroy.bash"
  begin_destroying
elif [ -n "$dry" ]; then
  number=PROJECT_NUMBER
  printf '# what an empty project would need; nothing is run\n'
  run gcloud services enable "${services[@]/%/.googleapis.com}" --project="$project"
else
  # --- everything is checked before anything is changed, but for the APIs: without them nothing can be asked for
  command -v gcloud >/dev/null || stop 'gcloud is not on the path: https://cloud.google.com/sdk/docs/install'
  command -v curl >/dev/null || stop 'curl is not on the path; the permissions are asked for with it'
  command -v sha256sum >/dev/null || stop 'sha256sum is not on the path (coreutils)'
  release=$(gcloud version 2>/dev/null) || stop 'gcloud does not say its version'
  for component in alpha beta; do
    grep -q "^$component " <<<"$release" || stop "gcloud has no $component commands; run: gcloud components install $component"
  done
  if [ -n "$redis" ]; then # --direct-vpc-egress of gcloud functions deploy
    sdk=$(sed -n 's/^Google Cloud SDK \([0-9]*\)\..*/\1/p' <<<"$release")
    [ "${sdk:-0}" -ge 558 ] || stop "gcloud is ${sdk:-of an unknown version}; --redis needs 558 or later; run: gcloud components update"
  fi
  active=$(gcloud config get-value project 2>/dev/null || true)
  [ "$active" = "$project" ] || stop "the active project is ${active:-not set}, not $project; run: gcloud config set project $project"
  number=$(gcloud projects describe "$project" --format='value(projectNumber)') || stop "the project $project cannot be read"
  [ -f "$packages/functions/package.json" ] || stop "$packages/functions is not there; run: npm run package"
  [ -z "$delayed" ] || [ -f "$packages/republisher/package.json" ] || stop "$packages/republisher is not there; run: npm run package"
  for name in "${sagas[@]}"; do
    file=$packages/functions/$(module_of "$name")
    [ -f "$file" ] || stop "$file is not there, and $name has no sagas without; run: npm run package -- --sagas FILE"
  done

  enabled=$(gcloud services list --enabled --project="$project" --format='value(config.name)')
  missing=()
  for api in "${services[@]}"; do
    [[ $'\n'"$enabled"$'\n' == *$'\n'"$api.googleapis.com"$'\n'* ]] || missing+=("$api.googleapis.com")
  done
  if [ ${#missing[@]} -gt 0 ] && [ -z "$enable" ]; then
    stop "APIs are not enabled: ${missing[*]}; add --enable-services, or run: gcloud services enable ${missing[*]}"
  fi
  [ ${#missing[@]} -eq 0 ] || run gcloud services enable "${missing[@]}" --project="$project"

  permissions=(
    cloudbuild.builds.create cloudfunctions.functions.create cloudfunctions.functions.update datastore.databases.get
    datastore.indexes.update iam.serviceAccounts.actAs iam.serviceAccounts.create iam.serviceAccounts.setIamPolicy
    pubsub.subscriptions.create pubsub.subscriptions.setIamPolicy pubsub.subscriptions.update
    pubsub.topics.attachSubscription pubsub.topics.create pubsub.topics.setIamPolicy
    resourcemanager.projects.setIamPolicy run.services.setIamPolicy serviceusage.services.use
  )
  [ -z "$new_database" ] || permissions+=(datastore.databases.create)
  [ -z "$enable" ] || permissions+=(serviceusage.services.enable)
  [ -z "$monitoring" ] || permissions+=(monitoring.alertPolicies.create monitoring.dashboards.create)
  if [ -n "$delayed" ] || [ ${#streams[@]} -gt 0 ]; then
    permissions+=(cloudscheduler.jobs.create cloudscheduler.jobs.update cloudtasks.queues.create cloudtasks.queues.setIamPolicy cloudtasks.queues.update)
  fi
  [ ${#triggers[@]} -eq 0 ] || permissions+=(eventarc.triggers.create eventarc.triggers.update)
  [ ${#outbox[@]} -eq 0 ] || permissions+=(cloudscheduler.jobs.create cloudscheduler.jobs.update)
  [ -z "$redis" ] || permissions+=(redis.instances.create redis.instances.getAuthString redis.instances.update secretmanager.secrets.create secretmanager.secrets.setIamPolicy secretmanager.versions.access secretmanager.versions.add)
  if [ -n "$delayed" ]; then
    if [ "$republisher" = app-engine ]; then permissions+=(iam.roles.create appengine.services.update appengine.versions.create); else permissions+=(run.services.create run.services.update); fi
  fi
  asked=$(printf '"%s",' "${permissions[@]}")
  token=$(gcloud auth print-access-token) || stop 'gcloud has no credentials; run: gcloud auth login'
  test_permissions() {
    local reply
    reply=$(printf 'Authorization: Bearer %s\n' "$token" |
      curl -sS -X POST -H @- -H 'Content-Type: application/json' -d "{\"permissions\":[${asked%,}]}" \
        "https://cloudresourcemanager.googleapis.com/v1/projects/$project:testIamPermissions" 2>&1) || reply+=' "error"'
    printf '%s' "$reply"
    ! grep -q '"error"' <<<"$reply"
  }
  ask test_permissions || stop "the permissions cannot be asked for: $answer"
  granted=$answer
  lacking=()
  for permission in "${permissions[@]}"; do
    [[ "$granted" == *"\"$permission\""* ]] || lacking+=("$permission")
  done
  [ ${#lacking[@]} -eq 0 ] || stop "you lack permissions on $project: ${lacking[*]}; docs/deploy.md names the roles"

  if [ -n "$delayed" ] && [ "$republisher" = app-engine ]; then
    location=$(value gcloud app describe --project="$project" --format='value(locationId)')
    [ -n "$location" ] ||
      stop "the project has no App Engine app; run: gcloud app create --region=REGION (once, it cannot be undone), or use --republisher cloud-run"
    # App Engine says europe-west and us-central where the others say europe-west1 and us-central1.
    case "$location" in europe-west | us-central) location=${location}1 ;; esac
    [ "$location" = "$region" ] || stop "the App Engine app is in $location, and the queues must be there too; use --region $location, or --republisher cloud-run"
    if [ "$service" != default ]; then
      there gcloud app services describe default --project="$project" ||
        stop "the app has no service yet, and the first must be the default one; use --app-engine-service default"
    fi
  fi
  if [ -z "$new_database" ]; then
    there gcloud firestore databases describe --database="$database" --project="$project" || stop "the database $database is not there; leave --existing-database out"
  fi
  if [ -z "$new_topics" ]; then
    for topic in "${topics[@]}"; do
      there gcloud pubsub topics describe "$topic" --project="$project" || stop "the topic $topic is not there; leave --existing-topics out"
    done
  fi

  for name in "${!outbox[@]}"; do
    for topic in ${outbox[$name]}; do
      if [[ " ${topics[*]} " == *" $topic "* ]]; then continue; fi
      there gcloud pubsub topics describe "$topic" --project="$project" || stop "--outbox: the topic $topic is not there"
    done
  done

  # What has one of these names already and cannot be changed must be as it would be made.
  mode=$(value gcloud firestore databases describe --database="$database" --project="$project" --format='value[separator=" "](type,databaseEdition)')
  case "$mode" in
    '' | FIRESTORE_NATIVE | 'FIRESTORE_NATIVE '*STANDARD | 'FIRESTORE_NATIVE ') ;;
    *) stop "the database $database is $mode, and must be in Native mode, Standard edition; use another --database" ;;
  esac
  same_topic() { # subscription, topic
    local found
    found=$(value gcloud pubsub subscriptions describe "$1" --project="$project" --format='value(topic.basename())')
    [ -z "$found" ] || [ "$found" = "$2" ] || stop "the subscription $1 is of the topic $found, not $2, which cannot be changed; give the function another name, or delete the subscription once it is empty"
  }
  for function in "${functions[@]}"; do
    IFS=: read -r name kind source target <<<"$function"
    same_topic "$name-push" "$source"
    same_topic "$name-dead-letters" "$name-dead-letters"
    generation=$(value gcloud functions describe "$name" --project="$project" --region="$region" --format='value(environment)')
    [ "$generation" != GEN_1 ] || stop "the function $name is one of the first generation; give it another name"
  done
  [ -z "$delayed" ] || same_topic republisher-dead-letters republisher-dead-letters
  if [ -n "$redis" ]; then
    there gcloud compute networks subnets describe "${redis#*:}" --project="$project" --region="$region" ||
      stop "the subnetwork ${redis#*:} is not there in $region"
    mode=$(value gcloud redis instances describe guarantees --project="$project" --region="$region" --format='value[separator=" "](transitEncryptionMode,authorizedNetwork.basename())')
    [ -z "$mode" ] || [ "$mode" = "SERVER_AUTHENTICATION ${redis%%:*}" ] ||
      stop "the Redis instance guarantees has $mode, and must have SERVER_AUTHENTICATION ${redis%%:*}, which cannot be changed; delete it, or use another project"
  fi
fi

agent="serviceAccount:service-$number@gcp-sa-pubsub.iam.gserviceaccount.com"
# A project of a domain, example.com:name, has the domain behind its name here.
case "$project" in *:*) domain=${project#*:}.${project%%:*} ;; *) domain=$project ;; esac
email() { printf '%s@%s.iam.gserviceaccount.com' "$1" "$domain"; }

# --- pieces

account() { # ID, what for
  local is_there=''
  ! there gcloud iam service-accounts describe "$(email "$1")" --project="$project" || is_there=yes
  # Another run may have made it a moment ago.
  accounts+=("$(email "$1")")
  [ -n "$is_there" ] || run gcloud iam service-accounts create "$1" --project="$project" --display-name="$2"
}

project_grant() { # account's ID, role, perhaps the title and expression of a condition
  local condition=None
  [ -z "${4:-}" ] || condition="title=$3,expression=$4"
  run gcloud projects add-iam-policy-binding "$project" --member="serviceAccount:$(email "$1")" --role="$2" --condition="$condition" --format=none
}

# What builds images and reads uploaded sources: of those repositories and buckets alone that Google makes for it.
build_grants() { # account's ID, title, first parts of the buckets' names, repositories, each with commas between
  local each images='resource.type != "artifactregistry.googleapis.com/Repository"' sources=''
  for each in ${4//,/ }; do images+=" || resource.name.endsWith(\"/repositories/$each\")"; done
  for each in ${3//,/ }; do sources+=" || resource.name.startsWith(\"projects/_/buckets/$each\")"; done
  project_grant "$1" roles/artifactregistry.writer "$2" "$images"
  project_grant "$1" roles/logging.logWriter
  project_grant "$1" roles/storage.objectViewer "$2" "${sources# || }"
}

database_grant() { # account's ID, first part of the title
  run gcloud projects add-iam-policy-binding "$project" --member="serviceAccount:$(email "$1")" --role=roles/datastore.user --format=none \
    --condition="title=$2-database,expression=resource.name == \"projects/$project/databases/$database\""
}

topic_grant() { # topic, member, role
  run gcloud pubsub topics add-iam-policy-binding "$1" --project="$project" --member="$2" --role="$3" --format=none
}

topic() {
  there gcloud pubsub topics describe "$1" --project="$project" ||
    run gcloud pubsub topics create "$1" --project="$project"
}

dead_letters() { # first part of the names, account's ID
  topic "$1-dead-letters"
  local limits=(--ack-deadline=60 --message-retention-duration=2678400s --expiration-period=never)
  if there gcloud pubsub subscriptions describe "$1-dead-letters" --project="$project"; then
    run gcloud pubsub subscriptions update "$1-dead-letters" --project="$project" "${limits[@]}"
  else
    run gcloud pubsub subscriptions create "$1-dead-letters" --project="$project" --topic="$1-dead-letters" "${limits[@]}"
  fi
  topic_grant "$1-dead-letters" "serviceAccount:$(email "$2")" roles/pubsub.publisher
}

# One that is there loses what would drop tasks or send them elsewhere.
queue() { # ID, flags
  local verb=create more=() id=$1
  shift
  if there gcloud tasks queues describe "$id" --project="$project" --location="$region"; then
    verb=update
    # --destroy pauses it.
    run gcloud tasks queues resume "$id" --project="$project" --location="$region"
    more=(
      --clear-max-retry-duration --clear-routing-override --clear-http-uri-override --clear-http-method-override
      --clear-http-header-override --clear-http-oidc-service-account-email-override --clear-http-oidc-token-audience-override
    )
  fi
  run gcloud tasks queues "$verb" "$id" --project="$project" --location="$region" "$@" "${more[@]}"
}

# A password is neither shown nor an argument.
secret() { # ID, value
  there gcloud secrets describe "$1" --project="$project" ||
    run gcloud secrets create "$1" --project="$project" --replication-policy=automatic
  local known=''
  if [ -z "$dry" ]; then known=$(value gcloud secrets versions access latest --secret="$1" --project="$project"); fi
  if [ -z "$dry" ] && [ "$known" = "$2" ]; then return 0; fi
  shown gcloud secrets versions add "$1" --project="$project" --data-file=-
  [ -n "$dry" ] || printf '%s' "$2" | gcloud secrets versions add "$1" --project="$project" --data-file=-
}

queue_grants() { # account's ID
  for queue in ${queues//,/ }; do
    run gcloud tasks queues add-iam-policy-binding "$queue" --project="$project" --location="$region" \
      --member="serviceAccount:$(email "$1")" --role=roles/cloudtasks.enqueuer --format=none
  done
}

caller_grants() { # account's ID: what making a task takes besides
  if [ "$republisher" = app-engine ]; then
    project_grant "$1" "projects/$project/roles/republisher_tasks"
  else
    run gcloud iam service-accounts add-iam-policy-binding "$(email republisher-caller)" --project="$project" \
      --member="serviceAccount:$(email "$1")" --role=roles/iam.serviceAccountUser --format=none
  fi
}

invoker() { # service, account's ID
  run gcloud run services add-iam-policy-binding "$1" --project="$project" --region="$region" \
    --member="serviceAccount:$(email "$2")" --role=roles/run.invoker --format=none
}

# How many bytes of messages fit an instance at once: terraform/modules/policy has the reasons.
bytes_in_flight() { printf '%s' $((($1 - 160 * 1048576) / 5)); }

joined() { # delimiter, words
  local IFS=$1
  shift
  printf '%s' "$*"
}

queue_names=$(for id in ${queues//,/ }; do printf 'projects/%s/locations/%s/queues/%s\n' "$project" "$region" "$id"; done | LC_ALL=C sort | paste -sd, -)
republisher_url="https://republisher-$number.$region.run.app"

# --- the project

# Pub/Sub's own account is granted rights below; in a young project it may not be there yet.
run gcloud beta services identity create --service=pubsub.googleapis.com --project="$project" --format=none

if [ -z "$build_account" ]; then
  account guarantees-build 'Builds the functions of pubsub-guarantees'
  build_grants guarantees-build builds gcf-v2-sources-,run-sources- gcf-artifacts,cloud-run-source-deploy
  build_account=$(email guarantees-build)
fi

# --- Firestore: only what is queried is indexed, and what has an expiry has a TTL policy

if [ -n "$new_database" ]; then
  there gcloud firestore databases describe --database="$database" --project="$project" ||
    run gcloud firestore databases create --database="$database" --project="$project" --location="$region" \
      --type=firestore-native --delete-protection
fi

index() { # collection's suffix, field, its order or nothing
  local how=(--disable-indexes)
  # Of the collection, which is the only scope that gcloud makes here.
  [ -z "$3" ] || how=(--index="order=$3")
  run gcloud firestore indexes fields update "$2" --project="$project" --database="$database" \
    --collection-group="$prefix-$1" "${how[@]}" --async --format=none
}

expiry() {
  run gcloud firestore fields ttls update expiresAt --project="$project" --database="$database" \
    --collection-group="$prefix-$1" --enable-ttl --async --format=none
}

for suffix in claims counters order-held order-streams outbox-rows outbox-streams payload payload-chunks saga-steps saga-traces sagas schedules; do
  index "$suffix" '*' ''
done
for field in readyAt waitingSince blocked.at; do index order-streams "$field" ascending; done
index order-held number ascending
for field in pendingAt place; do index outbox-rows "$field" ascending; done
index outbox-rows failedAt descending
index outbox-streams blockedAt descending
for suffix in payload payload-chunks; do index "$suffix" expiresAt ascending; done
index payload-chunks unfinishedAt ascending
index saga-traces openSince ascending
for field in wake byState; do index sagas "$field" ascending; done
for field in sweep byKey byDueTime; do index schedules "$field" ascending; done
for suffix in claims outbox-rows saga-steps saga-traces sagas schedules; do index "$suffix" expiresAt ''; done
for suffix in claims outbox-rows payload payload-chunks saga-steps saga-traces sagas schedules; do expiry "$suffix"; done

# --- topics

[ -z "$new_topics" ] || for name in "${topics[@]}"; do topic "$name"; done

# --- queues and the republisher

# A lost wake-up costs only time: this queue stops trying after five attempts.
if [ ${#streams[@]} -gt 0 ]; then
  queue "$wake_queue" --max-dispatches-per-second=500 --max-concurrent-dispatches=100 --max-attempts=5 \
    --min-backoff=1s --max-backoff=10s --max-doublings=3
fi

if [ -n "$delayed" ]; then
  for id in ${queues//,/ }; do
    queue "$id" --max-dispatches-per-second=500 --max-concurrent-dispatches=1000 --max-attempts=-1 \
      --min-backoff=1s --max-backoff=300s --max-doublings=8 --log-sampling-ratio=0.01
  done

  account republisher-run 'Runs the republisher'
  dead_letters republisher republisher-run
  for name in "${targets[@]}"; do
    topic_grant "$name" "serviceAccount:$(email republisher-run)" roles/pubsub.publisher
  done
  database_grant republisher-run republisher
  queue_grants republisher-run
  settings=(
    "ALLOWED_TOPICS=$(joined , "${targets[@]}")" "COLLECTION_PREFIX=$prefix" DEAD_LETTER_TOPIC=republisher-dead-letters
    "DELAY_QUEUES=$queue_names" "FIRESTORE_DATABASE=$database"
  )
  # An F1 has 384 MB.
  if [ "$republisher" = app-engine ]; then memory=384000000; else memory=$((512 * 1048576)); fi
  settings+=("MAX_BYTES_IN_FLIGHT=$(bytes_in_flight "$memory")")
  if [ "$republisher" = app-engine ]; then
    # What making a task for App Engine takes: no role of Google's is as small.
    there gcloud iam roles describe republisher_tasks --project="$project" ||
      run gcloud iam roles create republisher_tasks --project="$project" --title='Makes tasks for the republisher' \
        --permissions=appengine.applications.get --format=none
    caller_grants republisher-run
    build_grants republisher-run republisher-builds staging. gae-standard
    # App Engine takes variables from app.yaml alone: a copy of the packed folder gets them.
    if [ -n "$dry" ]; then
      copy=REPUBLISHER_COPY
      version=version
      printf '# app.yaml: service: %s\n' "$service"
      printf '# app.yaml: %s\n' "${settings[@]}"
    else
      copy=$(mktemp -d)
      trap 'rm -rf "$copy"' EXIT
      cp -R "$packages/republisher/." "$copy"
      sed -i.orig -e "s/^service: .*/service: $service/" -e "s/^runtime: .*/runtime: $runtime/" "$copy/app.yaml"
      rm "$copy/app.yaml.orig"
      {
        printf 'env_variables:\n'
        for setting in "${settings[@]}"; do printf '  %s: "%s"\n' "${setting%%=*}" "${setting#*=}"; done
      } >>"$copy/app.yaml"
      version=v$(cd "$copy" && find . -type f -print0 | sort -z | xargs -0 cat | sha256sum | cut -c1-12)
    fi
    if there gcloud app versions describe "$version" --service="$service" --project="$project"; then
      run gcloud app services set-traffic "$service" --splits="$version=1" --project="$project" --quiet
    else
      run gcloud app deploy "$copy/app.yaml" --project="$project" --version="$version" --promote --no-stop-previous-version --quiet \
        --service-account="$(email republisher-run)"
    fi
  else
    account republisher-caller 'Cloud Tasks calls the republisher as this account'
    caller_grants republisher-run
    settings+=("GOOGLE_CLOUD_PROJECT=$project" "OIDC_AUDIENCE=$republisher_url" "OIDC_SERVICE_ACCOUNT=$(email republisher-caller)")
    run gcloud run deploy republisher --project="$project" --region="$region" --source="$packages/republisher" --quiet \
      --build-service-account="projects/$project/serviceAccounts/$build_account" \
      --service-account="$(email republisher-run)" --no-allow-unauthenticated --ingress=internal \
      --concurrency=80 --cpu=1 --memory=512Mi --min-instances=0 --max-instances=10 --timeout=120s \
      --set-custom-audiences="$republisher_url" --set-env-vars="^;^$(joined ';' "${settings[@]}")"
    invoker republisher republisher-caller
  fi
fi

# --- Redis, for dedup

if [ -n "$redis" ]; then
  if there gcloud redis instances describe guarantees --project="$project" --region="$region"; then
    run gcloud redis instances update guarantees --project="$project" --region="$region" --enable-auth \
      --update-redis-config=maxmemory-policy=noeviction
  else
    run gcloud redis instances create guarantees --project="$project" --region="$region" --tier=standard --size=1 \
      --redis-version=redis_7_2 --network="projects/$project/global/networks/${redis%%:*}" --connect-mode=direct-peering \
      --enable-auth --transit-encryption-mode=server-authentication --redis-config=maxmemory-policy=noeviction
  fi
  url='' certificates=''
  if [ -z "$dry" ]; then
    of=(guarantees --project="$project" --region="$region")
    address=$(value gcloud redis instances describe "${of[@]}" --format='value[separator=":"](host,port)')
    password=$(value gcloud redis instances get-auth-string "${of[@]}" --format='value(authString)')
    certificates=$(value gcloud redis instances describe "${of[@]}" --flatten='serverCaCerts[]' --format='value(serverCaCerts.cert)')
    if [ -z "$address" ] || [ -z "$password" ] || [ -z "$certificates" ]; then stop 'the Redis instance does not say its address, password and certificates'; fi
    url="rediss://:$password@$address"
  fi
  secret guarantees-redis-url "$url"
  secret guarantees-redis-ca "$certificates"
fi

# --- the functions

deploy_function() { # name, kind, source, target
  local name=$1 kind=$2 source=$3 target=$4 uri
  account "$name-run" "Runs the function $name"
  account "$name-push" "Pub/Sub calls the function $name as this account"
  dead_letters "$name" "$name-run"
  topic_grant "$name-dead-letters" "$agent" roles/pubsub.publisher
  [ "$kind" = saga ] || topic_grant "$target" "serviceAccount:$(email "$name-run")" roles/pubsub.publisher

  local settings=(
    "CONSUMER=$name" "DEAD_LETTER_TOPIC=$name-dead-letters"
    "FUNCTION_TIMEOUT=${function_timeout}s" "GOOGLE_CLOUD_PROJECT=$project" "HANDLER_TIMEOUT=${handler_timeout}s"
    LOG_EXECUTION_ID=true "MAX_BYTES_IN_FLIGHT=$(bytes_in_flight $((512 * 1048576)))" "SOURCE_SUBSCRIPTION=$name-push"
  )
  if [ "$kind" = saga ]; then
    settings+=("SAGA_TOPIC=$source")
    [[ ";${environment[$name]:-}" == *';SAGA_MODULE='* ]] || settings+=("SAGA_MODULE=$definitions")
  else
    settings+=("TARGET_TOPIC=$target")
  fi
  local of_redis='' reaches=()
  [ "$kind" != dedup ] || of_redis=$redis
  if [ -n "$of_redis" ]; then
    local id
    for id in guarantees-redis-url guarantees-redis-ca; do
      run gcloud secrets add-iam-policy-binding "$id" --project="$project" \
        --member="serviceAccount:$(email "$name-run")" --role=roles/secretmanager.secretAccessor --format=none
    done
    settings+=(DEDUP_STORE=redis NODE_EXTRA_CA_CERTS=/etc/redis/ca.pem)
    reaches=(
      --network="${redis%%:*}" --subnet="${redis#*:}" --direct-vpc-egress=private-ranges-only
      --set-secrets="REDIS_URL=guarantees-redis-url:latest,/etc/redis:/ca.pem=guarantees-redis-ca:latest"
    )
  fi
  if [ -z "$of_redis" ] || [ -n "${outbox[$name]:-}" ]; then
    database_grant "$name-run" "$name"
    settings+=("COLLECTION_PREFIX=$prefix" "FIRESTORE_DATABASE=$database")
  fi
  if [ -n "${outbox[$name]:-}" ]; then
    settings+=(OUTBOX=on)
    local to
    for to in ${outbox[$name]}; do
      [ "$to" = "$target" ] || topic_grant "$to" "serviceAccount:$(email "$name-run")" roles/pubsub.publisher
    done
  fi
  case "$kind" in dedup | pipeline | saga) settings+=("DEDUP_LEASE=${dedup_lease}s" "DEDUP_RETENTION=${dedup_retention}s") ;; esac
  case "$kind" in
    fifo | pipeline)
      run gcloud tasks queues add-iam-policy-binding "$wake_queue" --project="$project" --location="$region" \
        --member="serviceAccount:$(email "$name-run")" --role=roles/cloudtasks.enqueuer --format=none
      run gcloud iam service-accounts add-iam-policy-binding "$(email "$name-push")" --project="$project" \
        --member="serviceAccount:$(email "$name-run")" --role=roles/iam.serviceAccountUser --format=none
      settings+=(
        "ORDER_LEASE=${order_lease}s" "WAKE_QUEUE=projects/$project/locations/$region/queues/$wake_queue"
        "WAKE_SERVICE_ACCOUNT=$(email "$name-push")" "WAKE_URL=https://$name-$number.$region.run.app"
      )
      ;;
  esac
  case "$kind" in
    delay | pipeline | saga)
      queue_grants "$name-run"
      caller_grants "$name-run"
      [[ ";${environment[$name]:-}" == *';DELAY_LEDGER='* ]] || settings+=(DELAY_LEDGER=keys)
      settings+=(DELAY_PAYLOADS=on "DELAY_QUEUES=$queue_names")
      if [ "$republisher" = app-engine ]; then
        settings+=("REPUBLISHER_SERVICE=$service")
      else
        settings+=("REPUBLISHER_URL=$republisher_url" "REPUBLISHER_SERVICE_ACCOUNT=$(email republisher-caller)")
      fi
      ;;
  esac
  [ "$kind" != pipeline ] || settings+=("SOURCE_TOPIC=$source")
  if [ -n "${environment[$name]:-}" ]; then
    local more
    IFS=';' read -ra more <<<"${environment[$name]}"
    settings+=("${more[@]}")
  fi

  run gcloud functions deploy "$name" --gen2 --project="$project" --region="$region" --runtime="$runtime" \
    --source="$packages/functions" --entry-point="$kind" --trigger-http --no-allow-unauthenticated --quiet --format=none \
    --service-account="$(email "$name-run")" --build-service-account="projects/$project/serviceAccounts/$build_account" \
    --ingress-settings=internal-only --cpu=1 --memory=512Mi --concurrency=80 --min-instances=0 --max-instances=20 \
    --timeout="${function_timeout}s" --set-env-vars="^;^$(joined ';' "${settings[@]}")" "${reaches[@]}"
  invoker "$name" "$name-push"
  run gcloud iam service-accounts add-iam-policy-binding "$(email "$name-push")" --project="$project" \
    --member="$agent" --role=roles/iam.serviceAccountTokenCreator --format=none

  if [ -n "$dry" ]; then
    uri="https://URL_OF_$name"
  else
    uri=$(value gcloud functions describe "$name" --project="$project" --region="$region" --format='value(serviceConfig.uri)')
    [ -n "$uri" ] || stop "the function $name has no URL"
  fi
  local limits=(
    --push-endpoint="$uri" --push-auth-service-account="$(email "$name-push")" --push-auth-token-audience="$uri"
    --ack-deadline="$ack_deadline" --message-retention-duration="${message_retention}s" --expiration-period=never
    --dead-letter-topic="$name-dead-letters" --max-delivery-attempts="$attempts"
    --min-retry-delay="${minimum_backoff}s" --max-retry-delay="${maximum_backoff}s"
  )
  if there gcloud pubsub subscriptions describe "$name-push" --project="$project"; then
    run gcloud pubsub subscriptions update "$name-push" --project="$project" "${limits[@]}"
  else
    run gcloud pubsub subscriptions create "$name-push" --project="$project" --topic="$source" "${limits[@]}"
  fi
  run gcloud pubsub subscriptions add-iam-policy-binding "$name-push" --project="$project" --member="$agent" --role=roles/pubsub.subscriber --format=none
  run gcloud pubsub subscriptions add-iam-policy-binding "$name-push" --project="$project" \
    --member="serviceAccount:$(email "$name-run")" --role=roles/pubsub.viewer --format=none

  # dedup alone has nothing to sweep.
  [ "$kind" != dedup ] || [ -n "${outbox[$name]:-}" ] || return 0
  account "$name-sweep" "Calls the sweep of $name"
  invoker "$name" "$name-sweep"
  local verb=create
  ! there gcloud scheduler jobs describe "$name-sweep" --project="$project" --location="$region" || verb=update
  run gcloud scheduler jobs "$verb" http "$name-sweep" --project="$project" --location="$region" \
    --description="Sweeps $name for what is due and no delivery processes" --schedule='* * * * *' --time-zone=Etc/UTC \
    --attempt-deadline=180s --max-retry-attempts=0 --http-method=POST --uri="$uri/sweep" \
    --oidc-service-account-email="$(email "$name-sweep")" --oidc-token-audience="$uri"
}

for function in "${functions[@]}"; do
  IFS=: read -r name kind source target <<<"$function"
  deploy_function "$name" "$kind" "$source" "$target"
done

# A database that was there before may be elsewhere, and its events come from there.
trigger_location() {
  local found='' asks=yes
  [ -z "$dry" ] || asks=''
  # Destroying collects commands as a dry run does, and is none.
  if [ -n "$destroy" ] && [ -z "$rehearsal" ]; then asks=yes; fi
  [ -z "$asks" ] || found=$(value gcloud firestore databases describe --database="$database" --project="$project" --format='value(locationId)')
  printf '%s' "${found:-$region}"
}

outbox_trigger() { # function
  local id="$1-outbox" location verb=create
  account "$id" "Eventarc calls $1 as this account"
  invoker "$1" "$id"
  project_grant "$id" roles/eventarc.eventReceiver
  location=$(trigger_location)
  ! there gcloud eventarc triggers describe "$id" --project="$project" --location="$location" || verb=update
  run gcloud eventarc triggers "$verb" "$id" --project="$project" --location="$location" \
    --event-filters="type=google.cloud.firestore.document.v1.created,database=$database" \
    --event-filters-path-pattern="document=$prefix-outbox-rows/{row}" --event-data-content-type=application/protobuf \
    --destination-run-service="$1" --destination-run-region="$region" --destination-run-path=/outbox \
    --service-account="$(email "$id")"
}

for name in "${triggers[@]}"; do outbox_trigger "$name"; done

# --- alerts and a dashboard

# Names of policies are numbers: the display name is what can be known. One that is there keeps its limits, which may
# have been changed on purpose, and gets the channels.
alert_there() { # title
  [ -z "$dry" ] || return 1
  local found policy
  found=$(value gcloud alpha monitoring policies list --project="$project" --filter="displayName=\"$1\"" --format='value(name)') || exit 1
  [ -n "$found" ] || return 1
  [ -n "$channels" ] || return 0
  for policy in $found; do
    run gcloud alpha monitoring policies update "$policy" --project="$project" --set-notification-channels="$channels" --format=none || exit 1
  done
}

alert() { # name, condition, filter, threshold or absent, duration, aligner, text
  local title="pubsub-guarantees: $1" when="> $4"
  [ "$4" != absent ] || when=absent
  ! alert_there "$title" || return 0
  run gcloud alpha monitoring policies create --project="$project" --display-name="$title" --combiner=OR \
    --condition-display-name="$2" --condition-filter="$3" --if="$when" --duration="$5" \
    --aggregation="{\"alignmentPeriod\":\"60s\",\"perSeriesAligner\":\"$6\"}" \
    --documentation="$7" --notification-channels="$channels" --format=none
}

either() { # values: one of them
  local list
  printf -v list ' OR "%s"' "$@"
  printf '(%s)' "${list# OR }"
}

log_alert() { # title, condition, filter, severity, when it closes by itself, text
  local title="pubsub-guarantees: $1"
  ! alert_there "$title" || return 0
  # Lines of the log can be asked for in a whole policy alone.
  run gcloud alpha monitoring policies create --project="$project" --notification-channels="$channels" --format=none --policy="$(
    printf '{"displayName":"%s","combiner":"OR","severity":"%s","conditions":[{"displayName":"%s","conditionMatchedLog":{"filter":"%s"}}],"alertStrategy":{"autoClose":"%s","notificationRateLimit":{"period":"3600s"}},"documentation":{"mimeType":"text/markdown","content":"%s"}}' \
      "$title" "$4" "$2" "${3//\"/\\\"}" "$5" "$6"
  )"
}

if [ -n "$monitoring" ]; then
  on_run='resource.type = "cloud_run_revision" AND resource.labels.service_name ='
  if [ ${#streams[@]} -gt 0 ]; then
    mapfile -t streams < <(printf '%s\n' "${streams[@]}" | LC_ALL=C sort)
    log_alert 'blocked streams' 'A stream is blocked at a message that failed for good' \
      "$on_run $(either "${streams[@]}") AND jsonPayload.event = $(either order_blocked)" ERROR 604800s \
      'The log line names the source, the key and the number: docs/operations.md'
    log_alert gaps 'A stream has waited for a missing number for longer than ORDER_GAP_TIMEOUT' \
      "$on_run $(either "${streams[@]}") AND jsonPayload.event = $(either order_gap_old)" WARNING 3600s \
      'The log line names the stream and the number: docs/operations.md'
  fi
  if [ ${#outbox[@]} -gt 0 ]; then
    mapfile -t relays < <(printf '%s\n' "${!outbox[@]}" | LC_ALL=C sort)
    log_alert outbox 'A row of the outbox could not be published, and what is behind it waits' \
      "$on_run $(either "${relays[@]}") AND jsonPayload.event = $(either outbox_blocked outbox_failed)" ERROR 604800s \
      'npx pubsub-guarantees outbox list, then resume, skip or reopen: docs/operations.md'
  fi
  if [ ${#sagas[@]} -gt 0 ]; then
    mapfile -t sagas < <(printf '%s\n' "${sagas[@]}" | LC_ALL=C sort)
    log_alert 'parked sagas' 'A saga waits for an operator' \
      "$on_run $(either "${sagas[@]}") AND jsonPayload.event = $(either saga_parked)" ERROR 604800s \
      'npx pubsub-guarantees sagas list --parked, then retry or settle: docs/operations.md'
  fi
  if [ -n "$delayed" ]; then
    on_republisher="$on_run $(either republisher)"
    [ "$republisher" = cloud-run ] || on_republisher="resource.type = \"gae_app\" AND resource.labels.module_id = $(either "$service")"
    log_alert 'memory of the republisher' 'The republisher refuses tasks, because too many bytes are in flight' \
      "$on_republisher AND jsonPayload.event = $(either memory_full)" WARNING 3600s \
      'Messages are late: give the republisher a larger instance class, or more memory: docs/operations.md'
    [ "$republisher" = cloud-run ] ||
      log_alert 'App Engine application' 'The App Engine application was changed: it may be disabled' \
        "resource.type = \"gae_app\" AND protoPayload.serviceName = \"appengine.googleapis.com\" AND protoPayload.methodName = $(either google.appengine.v1.Applications.UpdateApplication google.appengine.v1beta.Applications.UpdateApplication)" \
        WARNING 1800s 'Where its servingStatus is not SERVING, delayed messages wait in their queue: docs/operations.md'
    log_alert 'refused tasks' 'The republisher refuses a task for its topic, or for its caller' \
      "$on_republisher AND jsonPayload.event = $(either topic_not_allowed caller_refused)" ERROR 3600s \
      'Nothing is lost, and messages are late until the topics or the caller are corrected: docs/operations.md'
  fi
  mapfile -t every < <(printf '%s\n' "${names[@]}" | LC_ALL=C sort)
  log_alert memory 'A function refuses deliveries, because too many bytes are in flight' \
    "$on_run $(either "${every[@]}") AND jsonPayload.event = $(either memory_full)" WARNING 3600s \
    'Each refusal counts as a delivery attempt: give the function more memory: docs/operations.md'
  swept=()
  for name in "${every[@]}"; do
    [ "${kinds[$name]}" = dedup ] && [ -z "${outbox[$name]:-}" ] || swept+=("$name-sweep")
  done
  if [ ${#swept[@]} -gt 0 ]; then
    log_alert 'failing sweeps' 'Cloud Scheduler could not call a sweep, or the sweep failed' \
      "resource.type = \"cloud_scheduler_job\" AND resource.labels.job_id = $(either "${swept[@]}") AND severity = \"ERROR\"" ERROR 1800s \
      'Failed messages of streams, lost tasks and gaps wait for the next sweep: docs/operations.md'
    for name in "${swept[@]}"; do
      alert "no $name" 'The job has not run for 15 minutes' \
        "resource.type = \"cloud_scheduler_job\" AND resource.labels.job_id = \"$name\" AND metric.type = \"logging.googleapis.com/log_entry_count\" AND metric.labels.severity = \"INFO\"" \
        absent 900s ALIGN_SUM "The job $name is paused or deleted: docs/operations.md"
    done
  fi
  subscription='resource.type = "pubsub_subscription" AND resource.labels.subscription_id ='
  dead=("${names[@]}")
  [ -z "$delayed" ] || dead+=(republisher)
  for name in "${names[@]}"; do
    alert "backlog of $name" 'The oldest message is older than 600 s' \
      "$subscription \"$name-push\" AND metric.type = \"pubsub.googleapis.com/subscription/oldest_unacked_message_age\"" \
      600 120s ALIGN_MAX "Messages of $name-push are refused, or come faster than they are handled: docs/operations.md"
  done
  for name in "${dead[@]}"; do
    alert "dead letters of $name" 'There are dead letters' \
      "$subscription \"$name-dead-letters\" AND metric.type = \"pubsub.googleapis.com/subscription/num_undelivered_messages\"" \
      0 0s ALIGN_MAX "Messages that could not be processed are kept in $name-dead-letters for 31 days: docs/operations.md"
  done
  if [ -n "$delayed" ]; then
    for queue in ${queues//,/ }; do
      tasks="resource.type = \"cloud_tasks_queue\" AND resource.labels.queue_id = \"$queue\" AND resource.labels.location = \"$region\" AND metric.type ="
      alert "failing calls of $queue" 'Calls of the queue have failed in each of five minutes' \
        "$tasks \"cloudtasks.googleapis.com/queue/task_attempt_count\" AND metric.labels.response_code != monitoring.regex.full_match(\"2[0-9][0-9]|ok|OK\")" \
        0 300s ALIGN_SUM "The republisher does not take what the queue $queue sends, and its messages are late: docs/operations.md"
      alert "depth of $queue" 'The queue holds more than 100000 tasks' "$tasks \"cloudtasks.googleapis.com/queue/depth\"" \
        100000 300s ALIGN_MAX "More messages wait than expected, or what is due is not called: docs/operations.md"
      alert "lateness of $queue" 'Of 100 calls one is more than 60 s late' \
        "$tasks \"cloudtasks.googleapis.com/queue/task_attempt_delays\"" \
        60000 300s ALIGN_PERCENTILE_99 "The queue $queue does not keep up, or the republisher refuses its calls: docs/operations.md"
    done
  fi
  template="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/terraform/modules/monitoring/dashboard.json.tftpl"
  found=''
  [ -n "$dry" ] || found=$(value gcloud monitoring dashboards list --project="$project" --filter='displayName="pubsub-guarantees"' --format='value(name)')
  # The template's own names are meant, not the shell's.
  # shellcheck disable=SC2016
  if [ -z "$found" ]; then
    dashboard=$(tr -s ' \n' ' ' <"$template")
    queue_pattern=none
    [ -z "$delayed" ] || queue_pattern=${queues//,/|}
    dashboard=${dashboard//'${name}'/pubsub-guarantees}
    dashboard=${dashboard//'${functions}'/$(joined '|' "${names[@]}")}
    dashboard=${dashboard//'${subscriptions}'/$(joined '|' "${names[@]/%/-push}")}
    dashboard=${dashboard//'${dead_letters}'/$(joined '|' "${dead[@]/%/-dead-letters}")}
    dashboard=${dashboard//'${queues}'/$queue_pattern}
    run gcloud monitoring dashboards create --project="$project" --config="$dashboard" --format=none
  fi
fi

if [ -n "$destroy" ]; then
  # shellcheck disable=SC2119
  finish_destroying
  exit 0
fi

for function in "${functions[@]}"; do
  IFS=: read -r name kind source target <<<"$function"
  case "$kind" in
    saga) printf '# %s: start sagas at %s; participants subscribe to %s\n' "$name" "$source" "${target//,/, }" ;;
    *) printf '# %s: publish to %s, subscribe to %s\n' "$name" "$source" "$target" ;;
  esac
done
