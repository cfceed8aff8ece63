#!/usr/bin/env bash
# Shows the published database provisioner running: builds hangar, bundles the machine, starts a local control
# plane, provisions a database, lets another one fail, and stops everything again.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

make -s build
. dev/env.sh
kubectl=$(dev/build-tools.sh --print-dir)/kubectl
log=$PWD/build/provisioner-host.log
example=examples/database-provisioner

host=''
control_plane=$(dev/control-plane.sh up --with-kcm --with-scheduler --with-kwok --watch-pid=$$)
clean_up() {
  if [ -n "$host" ]; then
    kill "$host" 2>/dev/null || true
    wait "$host" 2>/dev/null || true
  fi
  dev/control-plane.sh down --dir "$control_plane"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
eval "$(dev/control-plane.sh env --dir "$control_plane")"

show() {
  printf '\n$ %s\n' "$*"
  case $1 in
    kubectl) "$kubectl" "${@:2}" ;;
    hangar) build/bin/hangar "${@:2}" ;;
  esac
}

# until_seen WHAT COMMAND...: repeats the command until it succeeds.
until_seen() {
  local what=$1 attempt
  shift
  for attempt in {1..300}; do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.2
  done
  die "$what: not within a minute. The host's log: $log"
}
has_value() { # NAME STATE
  [ "$("$kubectl" get statefulworkflow "$1" -o 'jsonpath={.status.value}')" = "$2" ]
}

"$kubectl" apply --server-side -f deploy/crds/ >/dev/null
"$kubectl" wait --for=condition=Established --timeout=30s -f deploy/crds/ >/dev/null
build/bin/hangar host --module-cache-dir=build/provisioner-modules --bind-address="127.0.0.1:${HANGAR_DEMO_PORT:-8090}" \
  >"$log" 2>&1 </dev/null &
host=$!

printf '\nThe machine, bundled into a ConfigMap. It needs no cluster to be tried out:\n'
# The packages that `npm install` would put into the example's folder.
NODE_PATH=$(dev/npm-package.sh xstate@4.38.3)
export NODE_PATH
build/bin/hangar machine build "$example" --name=database-provisioner >build/provisioner-module.yaml
printf '%s\n' PROVISION '{"type": "K8S_RESOURCE_CREATED", "resourceName": "data"}' >build/provisioner-events
show hangar machine run "$example" --events=build/provisioner-events

printf '\nA database is asked for.\n'
"$kubectl" apply --server-side -f build/provisioner-module.yaml >/dev/null
"$kubectl" apply -f $example/rights.yaml >/dev/null
show kubectl apply -f $example/workflow.yaml
until_seen "orders is ready" has_value orders ready
show kubectl get statefulworkflows
show kubectl get persistentvolumeclaims,deployments
show hangar workflow show orders

printf '\nAnother one, by somebody who may not.\n'
show kubectl apply -f $example/failing.yaml
until_seen "refused has failed" has_value refused failed
show kubectl get statefulworkflows
show hangar workflow show refused

printf '\nWhat a workflow made goes with it.\n'
show kubectl delete statefulworkflow orders --cascade=foreground
show kubectl get persistentvolumeclaims,deployments
