# A Google Cloud project that remembers, in place of gcloud: sourced by bash before deploy/gcloud.sh runs (BASH_ENV).
# What is there is a file of the folder STATE, its text is how it is set; every change is a line of CHANGED.
#
# It answers as gcloud does with prompts off, as read in its source (api_lib/util/api_enablement.py, command_lib/app/
# exceptions.py, command_lib/iam/iam_util.py) and in reports of its users:
# - a project starts with the APIs that a new one has, and what belongs to another API answers SERVICE_DISABLED, for
#   two more calls even after it was enabled;
# - an account that was just made is not known to the policies of other APIs at their first call;
# - FAIL_AT=n fails at change n, which is not made.

sleep() { :; }

curl() {
  command cat >/dev/null
  if ! enabled cloudresourcemanager; then
    printf '{"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "%s"}}' "$(refusal cloudresourcemanager)"
    return
  fi
  grep -oE '"[a-z]+\.[A-Za-z]+\.[A-Za-z]+"' <<<"$*"
}

refusal() {
  printf 'PERMISSION_DENIED: %s API has not been used in project demo-project before or it is disabled. Enable it by visiting https://console.developers.google.com/apis/api/%s.googleapis.com/overview?project=demo-project then retry. If you enabled this API recently, wait a few minutes for the action to propagate to our systems and retry.\n' "$1" "$1"
  printf -- "- '@type': type.googleapis.com/google.rpc.ErrorInfo\n  domain: googleapis.com\n  reason: SERVICE_DISABLED"
}

enabled() { # API
  case "$1" in serviceusage | compute) return 0 ;; esac
  [ -f "$STATE/api $1" ] || return 1
  local left
  left=$(<"$STATE/api $1")
  [ "$left" != 0 ] || return 0
  printf '%s' $((left - 1)) >"$STATE/api $1"
  return 1
}

fail() {
  printf 'ERROR: (gcloud) %s\n' "$*" >&2
  return 1
}

option() { # name, words: the value of --name=
  local word
  for word in "${@:2}"; do
    case "$word" in "--$1="*) printf '%s' "${word#*=}" && return ;; esac
  done
}

gcloud() {
  local all="$*" api=''
  case "$all" in
    version) printf 'Google Cloud SDK 580.0.0\nalpha 1\nbeta 1\n' && return ;;
    'config get-value project') printf 'demo-project\n' && return ;;
    'projects describe'*) printf '123\n' && return ;;
    'auth print-access-token') printf 'token\n' && return ;;
    'services list'*)
      for api in "$STATE"/api*; do [ ! -f "$api" ] || printf '%s.googleapis.com\n' "${api##*/api }"; done
      return
      ;;
    'services enable'* | 'beta services identity'*) api=serviceusage ;;
    projects*) api=cloudresourcemanager ;;
    iam*) api=iam ;;
    tasks*) api=cloudtasks ;;
    functions*) api=cloudfunctions ;;
    app*) api=appengine ;;
    scheduler*) api=cloudscheduler ;;
    secrets*) api=secretmanager ;;
    alpha* | monitoring*) api=monitoring ;;
    *) api=$1 ;;
  esac
  if ! enabled "$api"; then
    refusal "$api" >&2
    return 1
  fi
  case "$all" in
    'compute networks subnets describe'*) return ;;
    'app describe'*)
      [ -f "$STATE/app" ] || { fail 'The current Google Cloud project [demo-project] does not contain an App Engine application. Use `gcloud app create` to initialize an App Engine application within the project.'; return; }
      printf 'europe-west\n' && return
      ;;
    'app services describe'*)
      [ -f "$STATE/app" ] || fail 'NOT_FOUND: it is not there'
      return
      ;;
    'redis instances get-auth-string'*) printf 'pass-word\n' && return ;;
    'redis instances describe'*'value[separator=":"]'*) printf '10.0.0.3:6378\n' && return ;;
    'redis instances describe'*serverCaCerts*) printf 'first\nsecond\n' && return ;;
    'secrets versions access'*)
      [ -f "$STATE/value $(option secret "$@")" ] || { fail 'NOT_FOUND: no version'; return; }
      command cat "$STATE/value $(option secret "$@")" && return
      ;;
    *' policies list'*) ours "alert $(quoted "$all")" projects/p/alertPolicies && return ;;
    *' dashboards list'*) ours 'dashboard pubsub-guarantees' projects/p/dashboards && return ;;
    'functions list'*)
      for api in "$STATE"/functions\ *; do [ ! -f "$api" ] || printf '%s\t%s\n' "${api##*/functions }" "$(grep -oE -- '--entry-point=\w+' "$api" | cut -d= -f2)"; done
      return
      ;;
    *' describe '*)
      thing "$@"
      [ -f "$STATE/$named" ] || { fail "NOT_FOUND: $named: it is not there"; return; }
      case "$all" in
        'functions describe'*serviceConfig*) printf 'https://%s.example\n' "$3" ;;
        'pubsub subscriptions describe'*'value(topic'*) grep -oE -- '--topic=\S+' "$STATE/$named" | cut -d= -f2 ;;
      esac
      return
      ;;
  esac
  printf '%s\n' "${all//$'\n'/ }" >>"$CHANGED"
  local at
  at=$(wc -l <"$CHANGED")
  if [ "$at" = "${FAIL_AT:-}" ]; then
    fail unavailable
    return
  fi
  change "$@"
}

quoted() { # a filter: the value in its quotes
  local text=${1#*\"}
  printf '%s' "${text%%\"*}"
}

ours() { [ ! -f "$STATE/$1" ] || printf '%s/%s\n' "$2" "${1// /_}"; }

# The file that stands for what a command is about, in $named.
thing() {
  local word words=() id=''
  for word in "$@"; do
    case "$word" in -*) ;; *) words+=("$word") ;; esac
  done
  case "$*" in
    'firestore databases '*) named="database $(option database "$@")" ;;
    'app versions '* | 'app deploy '*) named="app version $(option version "$@")" ;;
    'app services '*) named="app service ${words[3]}" ;;
    'scheduler jobs create http'* | 'scheduler jobs update http'*) named="job ${words[4]}" ;;
    'scheduler jobs '*) named="job ${words[3]}" ;;
    'run services '*) named="run ${words[3]}" ;;
    'run deploy '* | 'functions '*) named="$1 ${words[2]}" ;;
    'iam service-accounts '*) named="account ${words[3]%%@*}" ;;
    'iam roles '*) named="role ${words[3]}" ;;
    'alpha monitoring policies create'*)
      id=$(option policy "$@") && id=${id#*displayName\":\"} && id=${id%%\"*}
      named="alert ${id:-$(option display-name "$@")}"
      ;;
    'alpha monitoring policies '*) named=${words[4]##*/} && named=${named//_/ } ;;
    'monitoring dashboards create'*) named='dashboard pubsub-guarantees' ;;
    'monitoring dashboards '*) named=${words[3]##*/} && named=${named//_/ } ;;
    'secrets versions '*) named="secret ${words[3]}" ;;
    'secrets '*) named="secret ${words[2]}" ;;
    *) named="$1 $2 ${words[3]}" ;;
  esac
}

change() {
  local all="$*" named='' api grant=grant
  case "$all" in
    'services enable'*)
      for api in "${@:3}"; do
        case "$api" in -*) ;; *) [ -f "$STATE/api ${api%%.*}" ] || printf 2 >"$STATE/api ${api%%.*}" ;; esac
      done
      return
      ;;
    'beta services identity'*) return ;;
    *add-iam-policy-binding* | *remove-iam-policy-binding*)
      for api in "$@"; do
        case "$api" in -*) ;; *-iam-policy-binding) grant+=' on' ;; *) grant+=" $api" ;; esac
      done
      # A condition may be longer than a file's name.
      grant+=" $(option role "$@") $(option member "$@") $(option condition "$@" | cksum)"
      grant=${grant//\//|}
      if [[ "$all" == *remove-iam-policy-binding* ]]; then
        [ -f "$STATE/$grant" ] || { fail 'Policy binding with the specified principal, role, and condition not found!'; return; }
        command rm "$STATE/$grant"
        return
      fi
      known "$(option member "$@")" || return
      printf '%s' "$(option role "$@")" >"$STATE/$grant"
      return
      ;;
    'secrets versions add'*)
      thing "$@"
      [ -f "$STATE/$named" ] || { fail "NOT_FOUND: $named"; return; }
      command cat >"$STATE/value $4"
      return
      ;;
    'firestore indexes fields update'* | 'firestore fields ttls update'*)
      [ -f "$STATE/database $(option database "$@")" ] || { fail 'NOT_FOUND: no database'; return; }
      printf '%s' "${*:5}" >"$STATE/$2 $(option collection-group "$@") ${all//[!a-zA-Z]/}"
      return
      ;;
  esac
  thing "$@"
  case "$all" in
    *' delete '*)
      [ -f "$STATE/$named" ] || { fail "NOT_FOUND: $named: it is not there"; return; }
      command rm "$STATE/$named"
      # What it alone had goes with it.
      case "$named" in
        'app service'*) command rm -f "$STATE/app version"* ;;
        functions*) command rm -f "$STATE/grant run services on ${named#* } "* ;;
      esac
      ;;
    *' pause '*) printf paused >"$STATE/state of $named" ;;
    *' resume '*) command rm -f "$STATE/state of $named" ;;
    *modify-push-config*)
      [ -f "$STATE/$named" ] || { fail "NOT_FOUND: $named: it is not there"; return; }
      sed -i 's/--push-endpoint=\S*/--push-endpoint=/' "$STATE/$named"
      ;;
    *' create '*)
      [ ! -f "$STATE/$named" ] || { fail "ALREADY_EXISTS: $named"; return; }
      if [ "$1 $2" = 'iam service-accounts' ]; then printf 1 >"$STATE/young $4"; fi
      settings "$@" >"$STATE/$named"
      ;;
    # The topic is said once, when the subscription is made.
    'pubsub subscriptions update'*) settings "$@" "$(grep -oE -- '--topic=\S+' "$STATE/$named")" >"$STATE/$named" ;;
    *' update '*)
      [ -f "$STATE/$named" ] || { fail "NOT_FOUND: $named: it is not there"; return; }
      ;;
    *' deploy '*)
      settings "$@" >"$STATE/$named"
      [ "$1" != app ] || : >"$STATE/app service $(sed -n 's/^service: //p' "$3")"
      ;;
  esac
}

# How a thing is set: the flags, in order of their names. A second value of one is the later.
settings() {
  local word
  for word in "$@"; do
    case "$word" in --*) printf '%s\n' "$word" ;; esac
  done | LC_ALL=C sort -u
}

known() { # the member of a binding
  local id=${1#serviceAccount:}
  id=${id%%@*}
  if [ ! -f "$STATE/young $id" ]; then return; fi
  command rm "$STATE/young $id"
  fail "INVALID_ARGUMENT: Service account ${1#serviceAccount:} does not exist."
}
