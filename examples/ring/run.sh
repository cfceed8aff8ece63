#!/usr/bin/env bash
# Shows three sleeping operators working: builds hangar, starts a local control plane, sends a number around the
# ring twice, and stops everything again.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

make -s build
. dev/env.sh
examples/build.sh build/guests operators >&2
kubectl=$(dev/build-tools.sh --print-dir)/kubectl
log=$PWD/build/ring-host.log

host=''
control_plane=$(dev/control-plane.sh up --with-kcm --watch-pid=$$)
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
  printf '\n$ kubectl %s\n' "$*"
  "$kubectl" "$@"
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
has_number() { # NAMESPACE NUMBER
  [ "$("$kubectl" --namespace "$1" get testresource number -o 'jsonpath={.spec.nonce}')" = "$2" ]
}
all_sleep() {
  [ "$("$kubectl" get operators --all-namespaces -o 'jsonpath={.items[*].status.phase}')" = "Asleep Asleep Asleep" ]
}

"$kubectl" apply --server-side -f deploy/crds/ -f examples/ring/testresources.yaml >/dev/null
"$kubectl" wait --for=condition=Established --timeout=30s -f deploy/crds/ -f examples/ring/testresources.yaml >/dev/null
build/bin/hangar host --allow-file-modules --module-cache-dir=build/ring-modules --bind-address="127.0.0.1:${HANGAR_DEMO_PORT:-8089}" \
  >"$log" 2>&1 </dev/null &
host=$!

printf '\nThree namespaces, an operator in each; each may read its own and write to the next one.\n'
"$kubectl" apply -f examples/ring/ring.yaml >/dev/null
until_seen "the operators sleep" all_sleep
show get operators --all-namespaces

printf '\nThe number 1 goes into ring0.\n'
"$kubectl" --namespace ring0 apply -f examples/ring/number.yaml >/dev/null
until_seen "the number is in ring2" has_number ring2 1
show get testresources --all-namespaces -o 'custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,NUMBER:.spec.nonce'

printf '\nA larger one, while all of them sleep.\n'
until_seen "the operators sleep" all_sleep
"$kubectl" --namespace ring0 patch testresource number --type=merge --patch='{"spec": {"nonce": 2}}' >/dev/null
until_seen "the number is in ring2" has_number ring2 2
show get testresources --all-namespaces -o 'custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,NUMBER:.spec.nonce'
sleep 6 # The host writes figures a few seconds late.
show get operators --all-namespaces
