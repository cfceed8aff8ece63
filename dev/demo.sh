#!/usr/bin/env bash
# make demo: builds hangar, then shows two operators that are Wasm modules at work on a real control
# plane, in a namespace of their own. With KUBECONFIG set it uses that cluster, otherwise it starts a
# local control plane and ends it again.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. dev/env.sh

namespace=hangar-demo
state=build/demo
log=$PWD/$state/host.log

# ---------------------------------------------------------------- showing

bold='' plain=''
if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
heading() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
tell() {
  local line
  for line in "$@"; do printf '%s\n' "${line:+  $line}"; done
}

# show ARGS...: runs kubectl, and shows the command with its output as a person would see them.
show() {
  printf '\n  %s$ kubectl %s%s\n' "$bold" "$*" "$plain"
  k "$@" 2>&1 | sed 's/^/    /'
}
k() { "$kubectl" --namespace "$namespace" "$@"; }

# until_status KIND NAME TEXT: shows what the object says of itself as it changes, until it says TEXT.
until_status() {
  local said='' now watch
  exec {watch}< <(exec "$kubectl" --namespace "$namespace" get "$1" "$2" --watch -o 'jsonpath={.status.msg}{"\n"}')
  watcher=$!
  while IFS= read -r -t 180 now <&"$watch"; do
    if [ -n "$now" ] && [ "$now" != "$said" ]; then printf '    %s %s says: %s\n' "$1" "$2" "$now"; fi
    said=$now
    if [ "$said" = "$3" ]; then break; fi
  done
  kill "$watcher" 2>/dev/null || true
  exec {watch}<&-
  [ "$said" = "$3" ] || give_up "$1 $2 should have said: $3. It says: $(k get "$1" "$2" -o 'jsonpath={.status}')"
}
give_up() {
  printf '\nerror: %s\n' "$*" >&2
  printf 'The last lines of %s:\n' "$log" >&2
  tail -n 20 "$log" >&2 || true
  exit 1
}

# ---------------------------------------------------------------- what has to be there

prepare() {
  heading "Preparing"
  if [ ! -d "$(dev/build-tools.sh --print-dir)" ] || [ ! -d "$(third_party/wasmtime/build.sh --print-dir)" ]; then
    tell "This is the first time: a Wasm runtime and a control plane are built from source, which takes about" \
      "half an hour on two cores. Both are kept; the next time takes seconds."
  fi
  make -s build
  . dev/env.sh
  examples/build.sh build/guests examples >&2
  kubectl=$(dev/build-tools.sh --print-dir)/kubectl
  mkdir -p "$state"
}

control_plane='' host='' made=()
clean_up() {
  if [ -z "$control_plane" ] && [ ${#made[@]} -gt 0 ] && kill -0 "$host" 2>/dev/null; then
    say "removing what the demo made: ${made[*]}"
    k delete --ignore-not-found --timeout=60s "${made[@]}" >&2 || true
  fi
  if [ -n "$host" ]; then
    kill "$host" 2>/dev/null || true
    wait "$host" 2>/dev/null || true
  fi
  if [ -n "$control_plane" ]; then dev/control-plane.sh down --dir "$control_plane"; fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

connect() {
  if [ -n "${KUBECONFIG:-}" ]; then
    heading "Your cluster"
    tell "KUBECONFIG is set, so the demo uses that cluster, in the namespace $namespace."
  else
    heading "A control plane"
    tell "etcd, kube-apiserver, kube-controller-manager and kube-scheduler, the real ones, on this machine." \
      "The nodes are simulated: pods run in name only, and those of Jobs end by themselves."
    control_plane=$(dev/control-plane.sh up --with-kcm --with-scheduler --with-kwok=2 --watch-pid=$$)
    eval "$(dev/control-plane.sh env --dir "$control_plane")"
  fi
  "$kubectl" create namespace "$namespace" --dry-run=client -o yaml | "$kubectl" apply -f - >/dev/null
  made+=("namespace/$namespace")
}

start_host() {
  heading "hangar"
  tell "One process runs every operator of this demo. Its log: $state/host.log"
  "$kubectl" apply --server-side -f deploy/crds/ >/dev/null
  build/bin/hangar host --allow-file-modules --module-cache-dir="$state/modules" --bind-address="127.0.0.1:${HANGAR_DEMO_PORT:-8089}" \
    >"$log" 2>&1 </dev/null &
  host=$!
}

# An Airway is cluster-wide: one that is there already is not the demo's to remove.
apply_airway() { # EXAMPLE NAME
  if ! "$kubectl" get airway "$2" >/dev/null 2>&1; then made=("airway/$2" "${made[@]}"); fi
  show apply -f "examples/$1/airway.yaml"
  if ! "$kubectl" wait "airway/$2" --for=condition=Ready --timeout=120s >/dev/null; then
    give_up "the airway $2 is not ready: $("$kubectl" get airway "$2" -o 'jsonpath={.status}')"
  fi
}

# ---------------------------------------------------------------- the two stories

# The examples are written for the namespace `default`.
apply_here() { # FILE
  printf '\n  %s$ kubectl apply -f %s%s\n' "$bold" "$1" "$plain"
  sed "s/^  namespace: default$/  namespace: $namespace/" "$1" | k apply -f - | sed 's/^/    /'
}

pipelines() {
  heading "1. Pipeline: three Jobs, one after the other"
  tell "An Airway makes a kind of its own, Pipeline, and binds it to a Wasm module (a \"flight\"). The module" \
    "reads a Pipeline on stdin and prints the Jobs that should exist by now; hangar applies them, and runs" \
    "the module again whenever one of them changes. The order is the module's, in plain Go:" \
    "examples/pipeline/flight."
  apply_airway pipeline pipelines.examples.com
  apply_here examples/pipeline/pipeline.yaml
  until_status pipeline nightly 'all jobs have completed'
  tell '' "Every step started when the one before had completed:"
  show get jobs --sort-by=.status.startTime -o 'custom-columns=NAME:.metadata.name,STARTED:.status.startTime,COMPLETED:.status.completionTime'
  show get pipelines

  tell '' "The same kind with a second step that fails: the third is never started, and the status says why."
  apply_here examples/pipeline/failing.yaml
  until_status pipeline doomed 'job doomed-two failed'
  show get pipelines
  show get jobs
}

apps() {
  heading "2. App: waits for what somebody else makes"
  tell "An App wants a database, which a cloud provider's controller would make, and a Deployment that reads" \
    "the connection secret. The secret does not exist yet when the flight first asks for it."
  if ! "$kubectl" get crd cloudsqlinstances.database.gcp.crossplane.io >/dev/null 2>&1; then
    made=("crd/cloudsqlinstances.database.gcp.crossplane.io" "${made[@]}")
    show apply -f examples/app/cloudsqlinstances.yaml
    "$kubectl" wait --for=condition=Established crd/cloudsqlinstances.database.gcp.crossplane.io --timeout=60s >/dev/null
  fi
  apply_airway app apps.examples.com
  apply_here examples/app/app.yaml
  until_status app shop 'Waiting for connection secret to be created'
  show get apps
  tell '' "Now we do what the provider's controller would do. hangar remembers that the flight looked for this" \
    "secret and runs it again as soon as it is there."
  apply_here examples/app/secret.yaml
  until_status app shop 'application deployed and ready'
  show get apps,deployments
  show get app shop -o 'jsonpath={.status}'
  printf '\n'
}

prepare
connect
start_host
pipelines
apps

heading "That is it"
awk '/^VmRSS/ {printf "  Both operators run in one process of %d MiB (pid %d).\n", $2 / 1024, pid}' pid="$host" "/proc/$host/status"
if [ -t 0 ] && [ -t 1 ]; then
  tell "Everything is still running. In another terminal:" '' \
    "  export KUBECONFIG=$KUBECONFIG" "  $kubectl -n $namespace get pipelines,apps,jobs,deployments" ''
  read -r -p '  Press Enter to end it. ' || true
fi
