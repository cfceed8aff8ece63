#!/usr/bin/env bash
# make demo: builds hangar, then shows its four ways of working on a real control plane: a hundred operators
# that sleep, an Airway, a workflow, and nodes. With KUBECONFIG set it uses that cluster, otherwise it starts a
# local control plane and stops it at the end.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. dev/env.sh

namespace=hangar-demo
operators=100
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

# show ARGS...: runs kubectl, and prints the command and its output as in a terminal.
show() {
  printf '\n  %s$ kubectl %s%s\n' "$bold" "$*" "$plain"
  k "$@" 2>&1 | sed 's/^/    /'
}
k() { "$kubectl" --namespace "$namespace" "$@"; }
# show_hangar ARGS...: the same for hangar's commands.
show_hangar() {
  printf '\n  %s$ hangar %s%s\n' "$bold" "$*" "$plain"
  build/bin/hangar "$@" 2>&1 | sed 's/^/    /'
}
try() { printf '\n  Try: %s%s%s\n' "$bold" "$*" "$plain"; }

# until_true WHAT COMMAND...: repeats the command until it succeeds.
until_true() {
  local what=$1 attempt
  shift
  for attempt in {1..900}; do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.2
  done
  give_up "$what: not within three minutes"
}

# until_status KIND NAME TEXT: prints the object's status message whenever it changes, until it is TEXT.
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

# ---------------------------------------------------------------- preparation

tools=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok)
modules=(pipeline ring)

# Steps: title, function, seconds that it takes from scratch on two idle cores, alone.
steps=("packages and toolchains:setup:60" "the WebAssembly engine:engine:220" "the control plane:control_plane:160" "hangar:program:165"
  "the modules:guests:60")
setup() { dev/setup.sh; }
engine() {
  third_party/wasmtime/build.sh >/dev/null && third_party/wasmparser/build.sh >/dev/null && third_party/quickjs/build.sh >/dev/null &&
    third_party/lua/build.sh >/dev/null
}
control_plane() { dev/build-tools.sh "${tools[@]}" >/dev/null; }
program() { HANGAR_BUILD_STATUS=1 tools/build.sh hangar hangar-compile hangar-guest; }
guests() { examples/build.sh build/guests "${modules[@]}" >&2; }

# is_there STEP: whether the step was done before, so that it takes only seconds. Each step checks for itself what to do.
is_there() {
  case $1 in
    engine) [ -d "$(third_party/wasmtime/build.sh --print-dir)" ] && [ -d "$(third_party/wasmparser/build.sh --print-dir)" ] &&
      [ -d "$(third_party/quickjs/build.sh --print-dir)" ] && [ -d "$(third_party/lua/build.sh --print-dir)" ] ;;
    control_plane) [ -z "$(dev/build-tools.sh --missing "${tools[@]}")" ] ;;
    program) [ -x build/release/bin/hangar ] ;;
    guests) [ -s build/guests/ring.wasm ] ;;
    setup) command -v clang++-19 >/dev/null ;;
  esac
}

# What each step took when it was last built here, beside the other lane: STEP SECONDS.
last_run=$HANGAR_CACHE_DIR/demo-seconds
remembered() { awk -v step="$1" '$1 == step {print $2}' "$last_run" 2>/dev/null || true; }
remember() { # STEP SECONDS
  mkdir -p "$HANGAR_CACHE_DIR"
  { awk -v step="$1" '$1 != step' "$last_run" 2>/dev/null || true; echo "$1 $2"; } >"$last_run.$1"
  mv "$last_run.$1" "$last_run"
}
seconds_of() {
  local step seconds
  seconds=$(remembered "$1")
  for step in "${steps[@]}"; do
    if [[ $step == *:$1:* ]]; then echo "${seconds:-${step##*:}}"; fi
  done
}
# seconds_of_all: of the missing steps. Lanes run at the same time: the longest counts, if the times of all are remembered.
seconds_of_all() {
  local lane step one sum=0 longest=0
  is_remembered=1
  for lane in "${lanes[@]}"; do
    one=0
    for step in $lane; do
      if [[ " ${missing[*]} " != *" $step "* ]]; then continue; fi
      [ -n "$(remembered "$step")" ] || is_remembered=0
      one=$((one + $(seconds_of "$step")))
    done
    sum=$((sum + one))
    if [ $one -gt $longest ]; then longest=$one; fi
  done
  if [ $is_remembered = 1 ]; then left=$longest; else left=$sum; fi
}
# left_text SECONDS
left_text() { echo "about $((($1 + 59) / 60)) minutes left$([ $is_remembered = 1 ] && echo ", as last time" || echo " on two cores")"; }
title_of() {
  local step
  for step in "${steps[@]}"; do
    if [[ $step == *:$1:* ]]; then echo "${step%%:*}"; fi
  done
}

# lane STEP...: builds them one after the other; what they print is in their logs.
lane() {
  local step
  for step in "$@"; do
    : >"$state/steps/$step.began"
    local began=$SECONDS
    "$step" >"$state/steps/$step.log" 2>&1 || { : >"$state/steps/$step.failed"; return 1; }
    echo $((SECONDS - began)) >"$state/steps/$step.done"
  done
}

# counted STEP: ", 12 of 345", by the last line of its log that says so (ninja's or build-tools.sh's), if there is one.
counted() {
  { grep -oE '^\[[0-9]+/[0-9]+\]|\([0-9]+ of [0-9]+\)' "$state/steps/$1.log" 2>/dev/null || true; } | tail -n 1 | sed -E 's|[][()]||g; s|/| of |; s|^|, |'
}

# live TEXT: the last line of the terminal, in place of the text before; nothing elsewhere. A text that is wider than the
# terminal is cut: the rest of it on a line below would stay.
live() { if [ -t 1 ]; then printf '\r\033[K\033[?7l%s\033[?7h' "${1:+  $1}"; fi; }

# follow_lanes SECONDS: prints a line whenever a step begins and every minute, and on a terminal what is being done each
# second, until all lanes have ended. SECONDS: how long what is missing takes.
follow_lanes() {
  local began=$SECONDS number=1 told=' ' said=$SECONDS shown=$SECONDS step left waiting doing alive=1
  while [ $alive = 1 ]; do
    alive=0
    for lane in "${building[@]}"; do if kill -0 "$lane" 2>/dev/null; then alive=1; fi; done
    waiting=0 doing=''
    for step in "${missing[@]}"; do
      if [ ! -e "$state/steps/$step.began" ]; then
        waiting=$((waiting + $(seconds_of "$step")))
      elif [ ! -e "$state/steps/$step.done" ]; then
        doing+="${doing:+; }$(title_of "$step")$(counted "$step")"
      fi
    done
    left=$(($1 - SECONDS + began))
    if [ $left -lt $waiting ]; then left=$waiting; fi
    left=$(left_text $left)
    for step in engine control_plane program guests; do
      if [ ! -e "$state/steps/$step.began" ] || [[ $told == *" $step "* ]]; then continue; fi
      told+="$step " number=$((number + 1)) said=$SECONDS
      live ''
      tell "$number of ${#steps[@]}: $(title_of "$step")$([[ " ${missing[*]} " != *" $step "* ]] || echo "; $left")"
    done
    if [ -n "$doing" ] && [ $((SECONDS - said)) -ge 60 ]; then
      said=$SECONDS
      live ''
      tell "$left: $doing"
    fi
    if [ -n "$doing" ] && [ $shown != $SECONDS ]; then
      shown=$SECONDS
      live "$left: $doing"
    fi
    for step in "$state"/steps/*.failed; do
      if [ -e "$step" ]; then live '' && log=${step%.failed}.log give_up "$(title_of "$(basename "$step" .failed)"): not built"; fi
    done
    if [ $alive = 1 ]; then sleep 0.3; fi
  done
  live ''
  for step in "${missing[@]}"; do
    if [ -s "$state/steps/$step.done" ]; then remember "$step" "$(cat "$state/steps/$step.done")"; fi
  done
}

# The steps after setup are built in two lanes: each has times with work for one core only, such as linking a large
# program. Both together need some 5 GiB.
building=() missing=()
prepare() {
  heading "Preparing"
  local step left=0 is_remembered lanes=("engine program" "control_plane guests") setup_left=0
  for step in setup engine control_plane program guests; do
    is_there $step || missing+=($step)
  done
  if [ "$(awk '$1 == "MemAvailable:" {print int($2 / 1024)}' /proc/meminfo)" -lt 6000 ]; then lanes=("engine program control_plane guests"); fi
  seconds_of_all
  if [[ " ${missing[*]} " == *" setup "* ]]; then setup_left=$(seconds_of setup); fi
  left=$((left + setup_left))
  if [ $left -gt 100 ]; then
    tell "What is missing is built from source. It is kept; the next time takes seconds. Logs: $state/steps"
  fi
  tell "1 of ${#steps[@]}: $(title_of setup)$([ $left -lt 60 ] || echo "; $(left_text $left)")"
  local began=$SECONDS
  setup
  . dev/env.sh
  if [ $setup_left -gt 0 ]; then remember setup $((SECONDS - began)); fi
  left=$((left - setup_left))
  rm -rf "$state/steps"
  mkdir -p "$state/steps"
  local one
  # Each lane is a process group, so that whatever it has started can be ended.
  set -m
  for one in "${lanes[@]}"; do
    # shellcheck disable=SC2086
    lane $one </dev/null &
    building+=($!)
  done
  set +m
  follow_lanes $left
  building=()
  kubectl=$(dev/build-tools.sh --print-dir)/kubectl
}

cluster='' host='' made=() rings=0
clean_up() {
  local lane
  for lane in "${building[@]}"; do kill -- "-$lane" 2>/dev/null || true; done
  if [ -z "$cluster" ] && [ ${#made[@]} -gt 0 ] && kill -0 "$host" 2>/dev/null; then
    say "removing what the demo made: ${made[*]}"
    if [ $rings = 1 ]; then "$kubectl" delete namespace --selector=hangar-demo=ring --timeout=180s >&2 || true; fi
    k delete --ignore-not-found --timeout=60s "${made[@]}" >&2 || true
  fi
  if [ -n "$host" ]; then
    kill "$host" 2>/dev/null || true
    wait "$host" 2>/dev/null || true
  fi
  if [ -n "$cluster" ]; then dev/control-plane.sh down --dir "$cluster"; fi
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
    cluster=$(dev/control-plane.sh up --with-kcm --with-scheduler --with-kwok=3 --watch-pid=$$)
    eval "$(dev/control-plane.sh env --dir "$cluster")"
  fi
  "$kubectl" create namespace "$namespace" --dry-run=client -o yaml | "$kubectl" apply -f - >/dev/null
  made+=("namespace/$namespace")
}

# Waits about a minute. `kubectl wait` alone fails at once if a definition has no conditions yet.
established() {
  for _ in {1..20}; do
    "$kubectl" wait --for=condition=Established --timeout=3s -f "$1" >/dev/null 2>&1 && return
    sleep 0.5
  done
  "$kubectl" wait --for=condition=Established --timeout=3s -f "$1" >/dev/null
}

start_host() {
  heading "hangar"
  tell "One host runs all operators of this demo. Its log: $state/host.log"
  "$kubectl" apply --server-side -f deploy/crds/ >/dev/null
  established deploy/crds/
  # The demo does not touch real nodes; the image is simulated, like the nodes.
  local -a nodes=(--features=airways,operators,workflows)
  # The records show turns and costs in the console. Other clusters may not let the host look up their users.
  local records=$((${HANGAR_DEMO_PORT:-8089} + 1))
  if [ -n "$cluster" ]; then
    nodes=(--installer-image=registry.example.com/hangar-node:v1 --node-ready-delay=2s
      --records-bind-address="127.0.0.1:$records" --records-url="https://127.0.0.1:$records")
  fi
  build/bin/hangar host --allow-file-modules --module-cache-dir="$state/modules" --bind-address="127.0.0.1:${HANGAR_DEMO_PORT:-8089}" \
    --namespace="$namespace" "${nodes[@]}" >"$log" 2>&1 </dev/null &
  host=$!
}
# In MiB, of the host and its guest processes: RssAnon is anonymous memory, RssFile are pages of files, which the kernel can drop
# at any time.
memory_of_host() {
  local pid
  for pid in "$host" $(children_of "$host"); do
    cat "/proc/$pid/status" 2>/dev/null || true # It has just ended.
  done | awk -v name="$1:" '$1 == name {sum += $2} END {printf "%.0f", sum / 1024}'
}

# All processes below one.
children_of() {
  local pid
  for pid in $(cat "/proc/$1/task"/*/children 2>/dev/null || true); do
    echo "$pid"
    children_of "$pid"
  done
}

# An Airway is cluster-scoped: the demo must not remove one that existed before.
apply_airway() { # EXAMPLE NAME
  if ! "$kubectl" get airway "$2" >/dev/null 2>&1; then made=("airway/$2" "${made[@]}"); fi
  show apply -f "examples/$1/airway.yaml"
  if ! "$kubectl" wait "airway/$2" --for=condition=Ready --timeout=120s >/dev/null; then
    give_up "the airway $2 is not ready: $("$kubectl" get airway "$2" -o 'jsonpath={.status}')"
  fi
}

# ---------------------------------------------------------------- the four stories

# Changes the namespace of the examples, `default`.
here() { sed -e "s/^  namespace: default$/  namespace: $namespace/" -e "s/namespace: default}/namespace: $namespace}/" "$1"; }
apply_here() { # FILE
  printf '\n  %s$ kubectl apply -f %s%s\n' "$bold" "$1" "$plain"
  here "$1" | k apply -f - | sed 's/^/    /'
}

# ring NUMBER: prints the namespace, the operator in it, and its right to write to the next namespace.
ring() {
  local mine=hangar-demo-ring-$1 next=hangar-demo-ring-$((($1 + 1) % operators))
  cat <<YAML
{apiVersion: v1, kind: Namespace, metadata: {name: $mine, labels: {hangar-demo: ring}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: read, namespace: $mine}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ring-read}
subjects: [{kind: ServiceAccount, name: default, namespace: $mine}]
---
YAML
  # To another file: the next namespace may come later in the same list.
  cat >&3 <<YAML
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: write, namespace: $next}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ring-write}
subjects: [{kind: ServiceAccount, name: default, namespace: $mine}]
---
apiVersion: hangar.dev/v1alpha1
kind: Operator
metadata: {name: ring, namespace: $mine}
spec:
  module: {url: build/guests/ring.wasm}
  sleep: {after: 1s}
  env: [{name: IN_NAMESPACE, value: $mine}, {name: OUT_NAMESPACE, value: $next}]
---
YAML
}
all_sleep() {
  [ "$("$kubectl" get operators --all-namespaces -o 'jsonpath={range .items[*]}{.status.phase}{"\n"}{end}' | grep -c '^Asleep$')" = "$operators" ]
}
came_round() { # NUMBER
  [ "$("$kubectl" --namespace "hangar-demo-ring-$((operators - 1))" get testresource number -o 'jsonpath={.spec.nonce}')" = "$1" ]
}

sleepers() {
  heading "1. $operators operators, asleep"
  tell "Each is a controller that somebody wrote in Rust (examples/ring): it watches its own namespace, and copies a" \
    "number to the next one. As containers they would be $operators pods, each with its own process and cache."
  local number first=$state/ring-namespaces.yaml then=$state/ring-operators.yaml
  for ((number = 0; number < operators; number++)); do ring "$number"; done >"$first" 3>"$then"
  rings=1
  made=("crd/testresources.amurant.io" "clusterrole/ring-read" "clusterrole/ring-write" "${made[@]}")
  "$kubectl" apply --server-side -f examples/ring/testresources.yaml >/dev/null
  established examples/ring/testresources.yaml
  awk 'BEGIN {RS = "---\n"; ORS = "---\n"} /kind: ClusterRole\n/' examples/ring/ring.yaml | "$kubectl" apply -f - >/dev/null
  "$kubectl" apply -f "$first" >/dev/null
  "$kubectl" apply -f "$then" >/dev/null
  tell '' "They start, list what they watch, and go to sleep: their memory is written to disk and given back."
  until_true "all $operators operators sleep" all_sleep
  printf '\n  %s$ kubectl get operators --all-namespaces | head -4%s\n' "$bold" "$plain"
  "$kubectl" get operators --all-namespaces 2>&1 | head -4 | sed 's/^/    /' || true
  tell '' "The host with all $operators of them: $(memory_of_host RssAnon) MiB of memory of its own, and $(memory_of_host RssFile) MiB of files that the system can take back."

  tell '' "A number goes into the first namespace, and comes out at the last: each operator wakes, copies, and sleeps again."
  local began ended
  began=$(date +%s%N)
  "$kubectl" --namespace hangar-demo-ring-0 apply -f examples/ring/number.yaml >/dev/null
  until_true "the number came through" came_round 1
  ended=$(date +%s%N)
  tell "It took $(((ended - began) / 1000000)) ms for $((operators - 1)) operators one after the other."
  try kubectl get operators --all-namespaces
}

pipelines() {
  heading "2. An Airway: three Jobs, one after the other"
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

  try kubectl -n "$namespace" apply -f examples/pipeline/failing.yaml
}

# has_value NAME STATE: whether a workflow is in that state.
has_value() { [ "$(k get statefulworkflow "$1" -o 'jsonpath={.status.value}')" = "$2" ]; }

workflow() {
  heading "3. A workflow: a database for a team"
  tell "A StatefulWorkflow is run by a state machine in TypeScript (XState): the machine decides, hangar carries out its" \
    "actions as the ServiceAccount provisioner, waits, and keeps the state in the workflow's status. The machine is" \
    "examples/database-provisioner, as it was published, bundled into a ConfigMap."
  local example=examples/database-provisioner
  NODE_PATH=$(dev/npm-package.sh xstate@4.38.3) build/bin/hangar machine build "$example" --name=database-provisioner >"$state/machine.yaml"
  k apply --server-side -f "$state/machine.yaml" >/dev/null
  here $example/rights.yaml | k apply -f - >/dev/null
  show apply -f $example/workflow.yaml
  until_true "the database is ready" has_value orders ready
  show get statefulworkflows,persistentvolumeclaims,deployments
  show_hangar workflow show orders -n "$namespace"
  try kubectl -n "$namespace" describe statefulworkflow orders
}

is_provisioned() { [ "$("$kubectl" get node "$1" -o 'jsonpath={.metadata.labels.kwasm\.sh/kwasm-provisioned}')" != '' ]; }

nodes() {
  [ -n "$cluster" ] || return 0
  heading "4. A node that learns to run WebAssembly"
  tell "Annotate a node, and hangar runs a privileged Job on it that installs runtimes for Wasm containers, waits until the" \
    "node is Ready again, and labels it. The nodes of this control plane are simulated, so nothing is installed here."
  local node
  node=$("$kubectl" get nodes -o 'jsonpath={.items[0].metadata.name}')
  show annotate node "$node" kwasm.sh/kwasm-node=true
  until_true "the node is provisioned" is_provisioned "$node"
  show_hangar nodes --namespace="$namespace"
  try kubectl annotate node "$node" kwasm.sh/kwasm-node-
}

prepare
connect
start_host
sleepers
pipelines
workflow
nodes

heading "That is it"
tell "$operators operators, an Airway, a workflow and node provisioning run in one host (pid $host): $(memory_of_host RssAnon) MiB of memory of its own."
if [ -t 0 ] && [ -t 1 ]; then
  tell "Everything is still running. In another terminal:" '' \
    "  export KUBECONFIG=$KUBECONFIG PATH=$(dirname "$kubectl"):$PWD/build/bin:\$PATH" "  kubectl get operators --all-namespaces" \
    "  hangar console --host-namespace=$namespace    # all of it as a page in your browser" ''
  read -r -p '  Press Enter to end it. ' || true
fi
