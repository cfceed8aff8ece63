#!/usr/bin/env bash
# The demonstration of hangar: a hundred operators that sleep, an Airway, a workflow, and on a cluster of its own
# nodes. `hangar demo` and `make demo` run it, from a directory that install.sh has made.
#
#   show.sh --hangar PROGRAM [--context NAME] [--yes] [--clean] [--state DIR] [--own-cluster]
#
# --state: where its log and the host's cache go (default: a temporary directory). --own-cluster: the cluster was made
# for this and goes away with it, so nothing is asked or removed, and its nodes are simulated.
set -euo pipefail

namespace=hangar-demo
operators=100
# The label of the namespaces, and of all objects that the demonstration makes outside of them.
label=hangar-demo

# ---------------------------------------------------------------- showing

here=$(dirname -- "$0")
. "$here/words.sh"
say() { printf '==> %s\n' "$*" >&2; }
fail() { # CODE TEXT
  printf 'error: %s\n' "$2" >&2
  if [ $# -gt 2 ]; then printf '%s\n' "${@:3}" >&2; fi
  exit "$1"
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
  "$hangar" "$@" 2>&1 | sed 's/^/    /'
}
try() { printf '\n  Try: %s%s%s\n' "$bold" "$*" "$plain"; }

# until_true WHAT COMMAND...: repeats the command until it succeeds.
until_true() {
  local what=$1 attempt
  shift
  for attempt in {1..900}; do
    if "$@" >/dev/null 2>&1; then return 0; fi
    kill -0 "$host" 2>/dev/null || give_up "$what: the host has ended"
    sleep 0.2
  done
  give_up "$what: not within three minutes"
}

# until_status KIND NAME TEXT: prints the object's status message whenever it changes, until it is TEXT.
until_status() {
  local said='' now watch watcher
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

# ---------------------------------------------------------------- the cluster

usage() { fail 2 "usage: $0 --hangar PROGRAM [--context NAME] [--yes] [--clean] [--state DIR] [--own-cluster]"; }

# The kubeconfig alone says which cluster it is, for kubectl and for the host.
port=${HANGAR_DEMO_PORT:-8089}
unset "${!HANGAR_@}"

hangar='' context='' yes='' clean='' state='' own_cluster=''
while [ $# -gt 0 ]; do
  case $1 in
    --hangar | --context | --state)
      [ $# -ge 2 ] || usage
      declare "${1#--}=$2"
      shift
      ;;
    --yes) yes=1 ;;
    --clean) clean=1 ;;
    --own-cluster) own_cluster=1 ;;
    *) usage ;;
  esac
  shift
done
[ -x "$hangar" ] || usage
hangar=$(realpath --no-symlinks -- "$hangar")
files=$(realpath -- "$here")
for need in "$files/rights.yaml" "$files/machine.yaml" "$files/modules/ring.wasm" "$files/modules/pipeline.wasm" "$files/../crds"; do
  [ -r "$need" ] || fail 1 "$need is missing: install hangar again"
done
kubectl=$(command -v kubectl) || fail 1 "kubectl is not in PATH. Install it (https://kubernetes.io/docs/tasks/tools/), and run hangar demo again"
for need in awk realpath sed setpriv setsid; do
  command -v "$need" >/dev/null || fail 1 "$need is not in PATH. The demonstration needs it"
done

temporary=''
if [ -z "$state" ]; then
  state=$(mktemp -d "${TMPDIR:-/tmp}/hangar-demo-XXXXXX")
  temporary=1
fi
log_shown=$state/host.log
state=$(realpath -- "$state")
log=$state/host.log
host='' touched='' server='' used=''

# kubectl writes a cache below the home directory, and without one into the current directory.
export HOME=${HOME:-$state}

# A copy of one context: a change of the kubeconfig's current context changes nothing here.
connect() {
  local problem
  rm -f -- "$state/kubeconfig"
  (umask 077 && "$kubectl" config view --raw --minify --flatten ${context:+--context="$context"} >"$state/kubeconfig" 2>"$state/problem") ||
    fail 1 "no cluster to use: $(cat "$state/problem")" \
      "Set KUBECONFIG or --kubeconfig, or start a local cluster first: kind create cluster"
  export KUBECONFIG=$state/kubeconfig
  cd -- "$files"
  used=$("$kubectl" config current-context)
  server=$("$kubectl" config view -o 'jsonpath={.clusters[0].cluster.server}')
  problem=$("$kubectl" get --raw /version --request-timeout=20s 2>&1) || fail 1 "the cluster $server does not answer: $problem"
}
is_local() { [[ $server =~ ^https?://(127\.[0-9.]+|localhost|\[::1\])(:[0-9]+)?(/|$) ]]; }

# The definitions of hangar by the names of their files.
definitions() {
  local file
  for file in ../crds/*.yaml; do basename "$file" .yaml; done
}
examples=(testresources.amurant.io pipelines.examples.com)

# present_definitions: NAME LABEL of those above that the cluster has; LABEL is `made`, or `-` if others made it.
present_definitions() {
  "$kubectl" get customresourcedefinitions --ignore-not-found --no-headers --label-columns="$label" |
    awk -v wanted="$(definitions | tr '\n' ' ')${examples[*]}" \
      'BEGIN {n = split(wanted, name, " "); for (i = 1; i <= n; i++) is[name[i]] = 1} is[$1] {print $1, ($3 == "made" ? "made" : "-")}'
}

# objects_of DEFINITION...: those that are not the demonstration's, as NAMESPACE/NAME, or -/NAME without a namespace.
objects_of() {
  local definition
  for definition in "$@"; do
    # The host writes the usage of all namespaces.
    if [ "$definition" = tenantusages.hangar.dev ]; then continue; fi
    "$kubectl" get "$definition" --all-namespaces --selector="!$label" \
      -o 'go-template={{range .items}}{{or .metadata.namespace "-"}}/{{.metadata.name}}{{"\n"}}{{end}}' |
      awk -v definition="$definition" -v home="^$namespace(-ring-[0-9]+)?/" '$0 !~ home {print definition " " $0}' || return 1
  done
}

# No other host may run the demonstration's objects, and the demonstration's host must find no objects of others.
refuse_if_taken() {
  local place holder name mark found owner leases present
  leases=$("$kubectl" get leases --all-namespaces --field-selector=metadata.name=hangar \
    -o 'jsonpath={range .items[*]}{.metadata.namespace} {.spec.holderIdentity}{"\n"}{end}')
  while read -r place holder; do
    [ -n "$holder" ] || continue
    holder=${holder//[^[:print:]]/} # Any user who may write a Lease can choose it.
    if [ "$place" = "$namespace" ]; then
      fail 1 "a demonstration runs in this cluster already: $holder has the Lease $namespace/hangar." \
        "If it does not run any more, remove its remains: hangar demo --clean"
    fi
    fail 1 "hangar runs in this cluster already: $holder has the Lease $place/hangar." \
      "The demonstration starts a host of its own, and both would act on the same objects. Use another cluster, such as one of kind." \
      "If that host does not run any more, delete the Lease: kubectl -n $place delete lease hangar"
  done <<<"$leases"
  owner=$("$kubectl" get namespace "$namespace" --ignore-not-found -o "jsonpath={.metadata.name}:{.metadata.labels.$label}")
  if [ -n "$owner" ] && [ "$owner" != "$namespace:home" ]; then
    fail 1 "the namespace $namespace exists, and is not the demonstration's: it has no label $label=home"
  fi
  present=$(present_definitions)
  while read -r name mark; do
    [ "$mark" = - ] || continue
    if [[ " ${examples[*]} " == *" $name "* ]]; then fail 1 "the kind $name exists, and is not the demonstration's" "If an earlier one was killed: hangar demo --clean"; fi
    found=$(objects_of "$name")
    [ -z "$found" ] || fail 1 "this cluster has objects that the demonstration's host would act on, such as $(head -n 1 <<<"$found")." \
      "Use a cluster without them, such as one of kind"
    kept+=("$name")
  done <<<"$present"
}
kept=()

# The namespaces with the demonstration's label and one of its names: other objects may have that label, too.
own_namespaces() { # home|ring...
  "$kubectl" get namespaces --selector="$label in ($1)" -o name | awk -v own="^namespace/$namespace(-ring-[0-9]+)?\$" '$0 ~ own'
}
own_roles() {
  "$kubectl" get clusterroles --selector="$label=made" -o name | awk -v own="/$namespace-ring-(read|write)\$" '$0 ~ own'
}
own_definitions() { present_definitions | awk '$2 == "made" {print $1}'; }
# leftovers: all of them; an error counts as one.
leftovers() { own_namespaces home,ring && own_roles && own_definitions || echo unknown; }

# Only a user who has the rights in a role can make it, so the API server compares them.
check_rights() {
  local problem
  # By a name that surely is free.
  problem=$(sed "s/^  name: hangar-demo\$/  name: hangar-demo-check-$$/" rights.yaml | "$kubectl" create --dry-run=server -f - 2>&1 >/dev/null) ||
    fail 1 "the kubeconfig's rights are not enough; $files/rights.yaml has all that the demonstration uses:" "$problem"
}

ask() {
  [ -z "$yes" ] && ! is_local || return 0
  if [ ! -t 0 ]; then fail 2 "the cluster $server is not on this machine: give --yes to use it nevertheless"; fi
  local answer=''
  read -r -p "  The cluster is not on this machine. Use it? [y/N] " answer || true
  case $answer in
    [yY] | [yY][eE][sS]) ;;
    *) fail 1 "not confirmed; nothing was changed" ;;
  esac
}

use_cluster() {
  heading "Your cluster"
  tell "The demonstration uses the cluster $server (context $used)." \
    "It makes the namespaces $namespace and $namespace-ring-0 to -$((operators - 1)), the kinds of hangar, the kinds ${examples[*]}," \
    "the Airway pipelines.examples.com and the ClusterRoles hangar-demo-ring-read and -write; in $namespace a workflow, and" \
    "as output of it and of the Airway three Jobs (busybox), a volume claim and a Deployment (postgres). At the end it removes all of this." \
    "A host runs on this machine, with the rights of the kubeconfig. Nodes are left alone."
  refuse_if_taken
  if [ ${#kept[@]} -gt 0 ]; then tell "These kinds are there already, and stay as they are: ${kept[*]}"; fi
  check_rights
  ask
  touched=1
  if [ -n "$(leftovers)" ]; then
    say "there are remains of an earlier demonstration"
    remove
  fi
}

# ---------------------------------------------------------------- removing

# Removes the demonstration's objects. The host removes its finalizers from deleted objects; if no host runs (any more), they are
# taken off here.
remove() {
  local name made others own
  made=$(own_definitions)
  mapfile -t own < <(own_namespaces ring)
  if [ ${#own[@]} -gt 0 ]; then "$kubectl" delete "${own[@]}" --wait=false >/dev/null; fi
  for name in pipelines.examples.com airways.yoke.cd statefulworkflows.workflows.example.com; do
    if ! is_present "$name"; then continue; fi
    mapfile -t own < <(own_objects_of "$name")
    if [ ${#own[@]} -eq 0 ]; then continue; fi
    # An Airway has no namespace, which kubectl remarks on.
    k delete "${own[@]}" --ignore-not-found --wait=false >/dev/null 2>"$state/problem" || cat "$state/problem" >&2
    if host_runs && k wait "${own[@]}" --for=delete --timeout=60s >/dev/null 2>&1; then continue; fi
    k patch "${own[@]}" --type=merge --patch='{"metadata":{"finalizers":null}}' >/dev/null 2>&1 || true
  done
  stop_host
  mapfile -t own < <(own_namespaces home,ring)
  if [ ${#own[@]} -gt 0 ]; then "$kubectl" delete "${own[@]}" --ignore-not-found --timeout=300s >/dev/null || true; fi
  for name in $made; do
    if ! is_present "$name"; then continue; fi # Its Airway has removed it.
    if ! others=$(objects_of "$name"); then
      say "the kind $name stays: its objects could not be listed"
    elif [ -z "$others" ]; then
      "$kubectl" delete customresourcedefinition "$name" --ignore-not-found --timeout=60s >/dev/null || true
    else
      say "the kind $name stays: others have made objects of it (${others%%$'\n'*})"
      "$kubectl" label customresourcedefinition "$name" "$label-" >/dev/null || true
    fi
  done
  mapfile -t own < <(own_roles)
  if [ ${#own[@]} -gt 0 ]; then "$kubectl" delete "${own[@]}" --ignore-not-found >/dev/null || true; fi
  if [ -n "$(leftovers)" ]; then
    say "not everything could be removed. Try again: hangar demo --clean"
    return 1
  fi
}
is_present() { [ -n "$("$kubectl" get customresourcedefinition "$1" --ignore-not-found -o name)" ]; }
# own_objects_of DEFINITION: as RESOURCE/NAME; the labelled ones if they have no namespace.
own_objects_of() {
  case $1 in
    airways.*) "$kubectl" get "$1" --selector="$label=made" -o name | awk '/\/pipelines\.examples\.com$/' ;;
    *) k get "$1" -o name ;;
  esac
}
host_runs() { [ -n "$host" ] && kill -0 "$host" 2>/dev/null; }
stop_host() {
  if [ -n "$host" ]; then
    kill "$host" 2>/dev/null
    wait "$host" 2>/dev/null
    host=''
  fi || true
}

clean_up() {
  local code=$?
  set +e # Remove as much as possible.
  trap - EXIT
  trap '' TERM HUP
  trap 'say "stopped before everything was removed. To remove the rest: hangar demo --clean"; exit 130' INT
  if [ -n "$touched" ] && [ -z "$own_cluster" ]; then
    say "removing the demonstration's objects; this takes up to some minutes"
    remove || [ $code != 0 ] || code=1
  fi
  stop_host
  rm -f -- "$state/kubeconfig" "$state/problem"
  if [ -n "$temporary" ]; then
    if [ $code = 0 ] || [ $code = 130 ] || [ ! -s "$log" ]; then
      rm -rf -- "$state"
    else
      rm -rf -- "$state/modules" "$state/.kube"
      say "the demonstration failed. The log of its host: $log"
    fi
  fi
  exit $code
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# ---------------------------------------------------------------- the host

# Waits about a minute. `kubectl wait` alone fails at once if a definition has no conditions yet.
established() { # DEFINITION...
  local -a wanted=("${@/#/customresourcedefinition/}")
  for _ in {1..20}; do
    "$kubectl" wait --for=condition=Established --timeout=3s "${wanted[@]}" >/dev/null 2>&1 && return
    sleep 0.5
  done
  "$kubectl" wait --for=condition=Established --timeout=3s "${wanted[@]}" >/dev/null
}

# Makes the objects of a file, with the demonstration's label: it must not remove objects of others.
make_labelled() { sed "s/^metadata:\$/&\n  labels: {$label: made}/" "$1" | "$kubectl" create -f - >/dev/null; }

start_host() {
  heading "hangar"
  tell "One host runs all operators of this demo. Its log: $log_shown"
  "$kubectl" create -f - >/dev/null <<<"{apiVersion: v1, kind: Namespace, metadata: {name: $namespace, labels: {$label: home}}}"
  local name names
  mapfile -t names < <(definitions)
  for name in "${names[@]}"; do
    if [[ " ${kept[*]} " != *" $name "* ]]; then make_labelled "../crds/$name.yaml"; fi
  done
  established "${names[@]}"
  # The demo does not touch real nodes; the image is simulated, like the nodes.
  local -a nodes=(--features=airways,operators,workflows --leader-elect --bind-address=127.0.0.1:0)
  # The records show turns and costs in the console. Other clusters may not let the host look up their users.
  if [ -n "$own_cluster" ]; then
    local records=$((port + 1))
    nodes=(--bind-address="127.0.0.1:$port" --installer-image=registry.example.com/hangar-node:v1 --node-ready-delay=2s
      --records-bind-address="127.0.0.1:$records" --records-url="https://127.0.0.1:$records")
  fi
  # A session of its own: Ctrl-C ends it only after it has removed its finalizers. It ends with this script.
  setsid setpriv --pdeathsig=TERM "$hangar" host --allow-file-modules --module-cache-dir="$state/modules" --namespace="$namespace" \
    "${nodes[@]}" >"$log" 2>&1 </dev/null &
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

# ---------------------------------------------------------------- the four stories

# binding ROLE NAMESPACE OF: the operator in the namespace OF has the role in NAMESPACE.
binding() {
  cat <<YAML
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: $1, namespace: $2}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: $namespace-ring-$1}
subjects: [{kind: ServiceAccount, name: default, namespace: $3}]
---
YAML
}

# ring NUMBER: prints the namespace, the operator in it, and its right to write to the next namespace.
ring() {
  local mine=$namespace-ring-$1 next=$namespace-ring-$((($1 + 1) % operators))
  cat <<YAML
{apiVersion: v1, kind: Namespace, metadata: {name: $mine, labels: {$label: ring}}}
---
YAML
  binding read "$mine" "$mine"
  # To another file: the next namespace may come later in the same list.
  binding write "$next" "$mine" >&3
  cat >&3 <<YAML
apiVersion: hangar.dev/v1alpha1
kind: Operator
metadata: {name: ring, namespace: $mine}
spec:
  module: {url: modules/ring.wasm}
  sleep: {after: 1s}
  env: [{name: IN_NAMESPACE, value: $mine}, {name: OUT_NAMESPACE, value: $next}]
---
YAML
}
all_sleep() {
  [ "$("$kubectl" get operators --all-namespaces -o 'jsonpath={range .items[*]}{.status.phase}{"\n"}{end}' | grep -c '^Asleep$')" = "$operators" ]
}
came_round() { # NUMBER
  [ "$("$kubectl" --namespace "$namespace-ring-$((operators - 1))" get testresource number -o 'jsonpath={.spec.nonce}')" = "$1" ]
}

sleepers() {
  heading "1. $operators operators, asleep"
  tell "Each is a controller that somebody wrote in Rust (examples/ring): it watches its own namespace, and copies a" \
    "number to the next one. As containers they would be $operators pods, each with its own process and cache."
  local number first=$state/ring-namespaces.yaml then=$state/ring-operators.yaml
  for ((number = 0; number < operators; number++)); do ring "$number"; done >"$first" 3>"$then"
  make_labelled examples/ring/testresources.yaml
  established testresources.amurant.io
  make_labelled examples/ring/roles.yaml
  # Not applied: a namespace of this name that is somebody else's is no part of the demonstration.
  "$kubectl" create -f "$first" >/dev/null
  "$kubectl" create -f "$then" >/dev/null
  tell '' "They start, list what they watch, and go to sleep: their memory is written to disk and given back."
  until_true "all $operators operators sleep" all_sleep
  printf '\n  %s$ kubectl get operators --all-namespaces | head -4%s\n' "$bold" "$plain"
  "$kubectl" get operators --all-namespaces 2>&1 | head -4 | sed 's/^/    /' || true
  tell '' "The host with all $operators of them: $(memory_of_host RssAnon) MiB of memory of its own, and $(memory_of_host RssFile) MiB of files that the system can take back."

  tell '' "A number goes into the first namespace, and comes out at the last: each operator wakes, copies, and sleeps again."
  local began ended
  began=$(date +%s%N)
  "$kubectl" --namespace "$namespace-ring-0" apply -f examples/ring/number.yaml >/dev/null
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
  show apply -f examples/pipeline/airway.yaml
  "$kubectl" wait airway/pipelines.examples.com --for=condition=Ready --timeout=300s >/dev/null ||
    give_up "the airway pipelines.examples.com is not ready: $("$kubectl" get airway pipelines.examples.com -o 'jsonpath={.status}')"
  "$kubectl" label customresourcedefinition pipelines.examples.com "$label=made" >/dev/null
  show apply -f examples/pipeline/pipeline.yaml
  until_status pipeline nightly 'all jobs have completed'
  tell '' "Every step started when the one before had completed:"
  show get jobs --sort-by=.status.startTime -o 'custom-columns=NAME:.metadata.name,STARTED:.status.startTime,COMPLETED:.status.completionTime'
  show get pipelines

  try kubectl -n "$namespace" apply -f "$here/examples/pipeline/failing.yaml"
}

# has_value NAME STATE: whether a workflow is in that state.
has_value() { [ "$(k get statefulworkflow "$1" -o 'jsonpath={.status.value}')" = "$2" ]; }

workflow() {
  heading "3. A workflow: a database for a team"
  tell "A StatefulWorkflow is run by a state machine in TypeScript (XState): the machine decides, hangar carries out its" \
    "actions as the ServiceAccount provisioner, waits, and keeps the state in the workflow's status. The machine is" \
    "examples/database-provisioner, as it was published, bundled into a ConfigMap."
  local example=examples/database-provisioner
  k apply --server-side -f machine.yaml >/dev/null
  k apply -f $example/rights.yaml >/dev/null
  show apply -f $example/workflow.yaml
  until_true "the database is ready" has_value orders ready
  show get statefulworkflows,persistentvolumeclaims,deployments
  show_hangar workflow show orders -n "$namespace"
  try kubectl -n "$namespace" describe statefulworkflow orders
}

is_provisioned() { [ "$("$kubectl" get node "$1" -o 'jsonpath={.metadata.labels.kwasm\.sh/kwasm-provisioned}')" != '' ]; }

nodes() {
  [ -n "$own_cluster" ] || return 0
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

the_end() {
  local all="operators, an Airway and a workflow run"
  if [ -n "$own_cluster" ]; then all="operators, an Airway, a workflow and node provisioning run"; fi
  heading "That is it"
  tell "$operators $all in one host (pid $host): $(memory_of_host RssAnon) MiB of memory of its own."
  if [ -t 0 ] && [ -t 1 ]; then
    tell "Everything is still running. In another terminal:" '' \
      "  export KUBECONFIG=$KUBECONFIG PATH=$(dirname "$kubectl"):$(dirname "$hangar"):\$PATH" "  kubectl get operators --all-namespaces" \
      "  hangar console --host-namespace=$namespace    # all of it as a page in your browser" ''
    read -r -p '  Press Enter to end it. ' || true
  fi
}

connect
if [ -n "$clean" ]; then
  if [ -z "$(leftovers)" ]; then
    say "no remains of a demonstration are in the cluster $server (context $used)"
    exit 0
  fi
  tell "There are remains of an earlier demonstration in the cluster $server (context $used)."
  ask
  touched=1
  exit 0
fi
if [ -z "$own_cluster" ]; then use_cluster; fi
touched=1
start_host
sleepers
pipelines
workflow
nodes
the_end
