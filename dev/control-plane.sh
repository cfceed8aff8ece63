#!/usr/bin/env bash
# A real Kubernetes control plane on this machine's loopback, from the programs of dev/build-tools.sh.
# An instance is a directory. Any number of them may run at once, each on its own ports.
#
#   control-plane.sh up [--dir DIR] [options]    start components that do not run yet, wait until ready, print DIR
#   control-plane.sh down --dir DIR              stop everything, delete DIR
#   control-plane.sh status --dir DIR            print one line for each component; fails if one is down
#   control-plane.sh env --dir DIR               print KUBECONFIG and all addresses, for `eval`
#   control-plane.sh kubectl --dir DIR -- ARGS   run kubectl as cluster admin
#   control-plane.sh stop|kill|start NAME --dir DIR
#                                                stop one component (TERM or KILL), or start it again;
#                                                it keeps its state and its port
#
# DIR defaults to $HANGAR_CP_DIR (`env` sets it); if that is empty, `up` creates a new directory.
# NAME: etcd kube-apiserver kube-controller-manager kube-scheduler kwok toxiproxy registry
#
# Options of `up`; a later `up` on the same DIR adds its options:
#   --with-kcm[=CONTROLLERS]    kube-controller-manager (CONTROLLERS: its --controllers, default *)
#   --with-scheduler            kube-scheduler
#   --with-kwok[=N]             N simulated nodes (default 1); control-plane/stages.yaml defines the behaviour of pods
#   --with-proxy                toxiproxy in front of the API server, for fault injection
#   --with-registry             OCI registry: plain HTTP, basic authentication with a random password
#   --audit                     audit log of the API server, one line for each request
#   --apiserver-arg=ARG         another flag for kube-apiserver (repeatable)
#   --watch-pid=PID             stop this instance when process PID has ended for any reason
#   --log-dir=DIR               write the logs to this directory instead of the instance's
#   --bin=DIR                   directory of the programs (default: $HANGAR_TOOLS_DIR, then the cache)
#
# Everything listens on 127.0.0.1 only. Exits 77 if the programs have not been built.
set -euo pipefail
self=$(readlink -f "${BASH_SOURCE[0]}")
here=$(dirname "$self")
. "$here/env.sh"

components=(registry toxiproxy kwok kube-scheduler kube-controller-manager kube-apiserver etcd)
usage() { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$self" >&2; }

# ---------------------------------------------------------------- arguments

command=${1:-}
[ $# = 0 ] || shift
dir=${HANGAR_CP_DIR:-}
kcm='' scheduler='' kwok='' proxy='' registry='' audit='' apiserver_args=()
watch_pid='' log='' bin='' rest=()

# An instance remembers its options: later commands need DIR only. New options are added to the old ones.
previous=
for argument in "$@"; do
  case $previous$argument in
    --) break ;;
    --dir=*) dir=${argument#*=} ;;
    '--dir '*) dir=$argument ;;
  esac
  previous=
  if [ "$argument" = --dir ]; then previous='--dir '; fi
done
if [ -n "$dir" ] && [ -r "$dir/options" ]; then . "$dir/options"; fi

while [ $# -gt 0 ]; do
  case $1 in
    --dir) shift ;;
    --dir=*) ;;
    --with-kcm) kcm='*' ;;
    --with-kcm=*) kcm=${1#*=} ;;
    --with-scheduler) scheduler=1 ;;
    --with-kwok) kwok=1 ;;
    --with-kwok=*) kwok=${1#*=} ;;
    --with-proxy) proxy=1 ;;
    --with-registry) registry=1 ;;
    --audit) audit=1 ;;
    --apiserver-arg=*) apiserver_args+=("${1#*=}") ;;
    --watch-pid=*) watch_pid=${1#*=} ;;
    --log-dir=*) log=${1#*=} ;;
    --bin=*) bin=${1#*=} ;;
    --) shift; rest+=("$@"); break ;;
    -*) usage; die "unknown option $1" ;;
    *) rest+=("$1") ;;
  esac
  shift
done

# ---------------------------------------------------------------- processes

# started PID: when that process started, in ticks since boot. By now a pid alone may belong to
# another process.
started() {
  local stat
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
  read -ra stat <<<"${stat##*) }"
  # A killed process is a zombie before its last threads have let go of its ports: [17] counts them.
  [ "${stat[0]}" != Z ] || [ "${stat[17]}" -gt 1 ] || return 1
  echo "${stat[19]}"
}

# pid_of NAME: the pid of a component that is alive.
pid_of() {
  local pid ticks
  { read -r pid ticks <"$dir/run/$1.pid"; } 2>/dev/null || return 1
  [ "$(started "$pid")" = "$ticks" ] || return 1
  echo "$pid"
}

# launch NAME COMMAND...: in a session of its own, so that neither a terminal nor the caller's end reaches it.
launch() {
  local name=$1 pid
  shift
  setsid "$@" >>"$log/$name.log" 2>&1 </dev/null 9>&- &
  pid=$!
  echo "$pid $(started "$pid")" >"$dir/run/$name.pid"
}

# terminate SIGNAL NAME...: all at once; those that still run after 5 s are killed.
terminate() {
  local signal=$1 name pid tries
  shift
  for name in "$@"; do
    if pid=$(pid_of "$name"); then kill -"$signal" "$pid" 2>/dev/null || true; fi
  done
  for name in "$@"; do
    for ((tries = 0; tries < 250; tries++)); do
      pid=$(pid_of "$name") || break
      if [ $tries = 200 ]; then kill -KILL "$pid" 2>/dev/null || true; fi
      sleep 0.025
    done
    rm -f "$dir/run/$name.pid"
  done
}

# until_ready NAME SECONDS COMMAND...: until COMMAND succeeds. Fails as soon as the component dies.
until_ready() {
  local name=$1 deadline=$((SECONDS + $2))
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ! pid_of "$name" >/dev/null; then
      tail -n 20 "$log/$name.log" >&2
      die "$name ended during its start"
    fi
    if [ $SECONDS -ge $deadline ]; then
      tail -n 20 "$log/$name.log" >&2
      die "$name is not ready in time"
    fi
    sleep 0.04
  done
}

http_ok() { curl -fsS --noproxy '*' --max-time 5 -o /dev/null "$@"; }

kubectl_admin() { "$bin/kubectl" --kubeconfig="$dir/kubeconfig" "$@"; }

# ---------------------------------------------------------------- ports

# A block of 16 ports for each instance, below those that the kernel gives to outgoing connections, so that a
# stopped component finds its port free when it starts again. A file that names the instance's directory
# reserves it; the reservation ends with the directory.
port_first=23000 port_block=16
reserved=${TMPDIR:-/tmp}/hangar-ports-$(id -u)
choose_ports() {
  if [ -r "$dir/port" ]; then return; fi
  local last block owner
  read -r last _ </proc/sys/net/ipv4/ip_local_port_range
  mkdir -p -m 700 "$reserved"
  exec 8>"$reserved/lock"
  flock 8
  local listening
  # Without IPv6 there is no tcp6. State 0A is LISTEN; the port is in hexadecimal.
  listening=" $({ cat /proc/net/tcp /proc/net/tcp6 2>/dev/null || true; } | awk '$4 == "0A" {sub(".*:", "", $2); print $2}' | tr '\n' ' ')"
  for ((block = port_first; block + port_block <= last; block += port_block)); do
    if { read -r owner <"$reserved/$block"; } 2>/dev/null && [ -d "$owner" ]; then continue; fi
    if block_is_free; then
      echo "$dir" >"$reserved/$block"
      echo "$block" >"$dir/port"
      break
    fi
  done
  exec 8>&-
  [ -r "$dir/port" ] || die "no block of $port_block free ports between $port_first and $last"
}
block_is_free() {
  local port
  for ((port = block; port < block + port_block; port++)); do
    case $listening in *" $(printf %04X "$port") "*) return 1 ;; esac
  done
}
read_ports() {
  local base
  read -r base <"$dir/port"
  etcd_port=$base etcd_peer_port=$((base + 1)) api_port=$((base + 2)) kcm_port=$((base + 3))
  scheduler_port=$((base + 4)) kwok_port=$((base + 5)) toxiproxy_port=$((base + 6)) proxy_port=$((base + 7))
  registry_port=$((base + 8)) # the rest of the block is for a node's daemons (dev/node.sh)
  url=https://127.0.0.1:$api_port proxy_url=https://127.0.0.1:$proxy_port
}

# ---------------------------------------------------------------- certificates

openssl_quietly() { openssl "$@" 2>>"$log/openssl.log" || { tail -n 5 "$log/openssl.log" >&2; die "openssl ${1} failed"; }; }

make_ca() { # NAME
  openssl_quietly req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
    -subj "/CN=hangar-$1" -keyout "$pki/$1.key" -out "$pki/$1.crt" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature
}
make_certificate() { # NAME SUBJECT USAGE [ALTERNATIVE-NAMES] [CA]
  local ca=${5:-ca}
  openssl_quietly req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
    -subj "$2" -CA "$pki/$ca.crt" -CAkey "$pki/$ca.key" -keyout "$pki/$1.key" -out "$pki/$1.crt" \
    -addext basicConstraints=critical,CA:FALSE -addext keyUsage=critical,digitalSignature \
    -addext "extendedKeyUsage=$3" ${4:+-addext "subjectAltName=$4"}
}
make_kubeconfig() { # FILE CERTIFICATE SERVER
  cat >"$dir/$1" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: local, cluster: {server: "$3", certificate-authority-data: $(base64 -w0 "$pki/ca.crt")}}]
users: [{name: $2, user: {client-certificate-data: $(base64 -w0 "$pki/$2.crt"), client-key-data: $(base64 -w0 "$pki/$2.key")}}]
contexts: [{name: local, context: {cluster: local, user: $2}}]
current-context: local
YAML
}
make_pki() {
  if [ -e "$pki/complete" ]; then return; fi
  make_ca ca
  make_ca front-proxy-ca
  local cluster_names=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc
  make_certificate apiserver /CN=kube-apiserver serverAuth "DNS:localhost,IP:127.0.0.1,IP:10.96.0.1,$cluster_names"
  make_certificate front-proxy-client /CN=front-proxy-client clientAuth '' front-proxy-ca
  make_certificate admin /O=system:masters/CN=admin clientAuth
  make_certificate kcm /CN=system:kube-controller-manager clientAuth
  make_certificate scheduler /CN=system:kube-scheduler clientAuth
  make_certificate loopback /CN=localhost serverAuth DNS:localhost,IP:127.0.0.1
  openssl_quietly ecparam -name prime256v1 -genkey -noout -out "$pki/service-account.key"
  openssl_quietly ec -in "$pki/service-account.key" -pubout -out "$pki/service-account.pub"
  make_kubeconfig kubeconfig admin "$url"
  make_kubeconfig proxy.kubeconfig admin "$proxy_url"
  make_kubeconfig kcm.kubeconfig kcm "$url"
  make_kubeconfig scheduler.kubeconfig scheduler "$url"
  touch "$pki/complete"
}

# ---------------------------------------------------------------- components
# start_NAME starts it if it is not running and returns once it answers.

start_etcd() {
  if ! pid_of etcd >/dev/null; then
    # No fsync: a crash of the machine may lose this instance, which is acceptable. Elections of a single
    # member need not wait the usual second.
    launch etcd "$bin/etcd" --name=local --data-dir="$dir/etcd" --unsafe-no-fsync --logger=zap --log-level=warn \
      --listen-client-urls="http://127.0.0.1:$etcd_port" --advertise-client-urls="http://127.0.0.1:$etcd_port" \
      --listen-peer-urls="http://127.0.0.1:$etcd_peer_port" \
      --initial-advertise-peer-urls="http://127.0.0.1:$etcd_peer_port" \
      --initial-cluster="local=http://127.0.0.1:$etcd_peer_port" \
      --heartbeat-interval=20 --election-timeout=100 --quota-backend-bytes=4294967296 --auto-compaction-retention=1h
  fi
  until_ready etcd 60 http_ok "http://127.0.0.1:$etcd_port/health"
}

start_kube-apiserver() {
  if ! pid_of kube-apiserver >/dev/null; then
    local audit_args=()
    if [ -n "$audit" ]; then
      cat >"$dir/audit-policy.yaml" <<YAML
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
YAML
      audit_args=(--audit-policy-file="$dir/audit-policy.yaml" --audit-log-path="$log/audit.log")
    fi
    launch kube-apiserver "$bin/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd_port" \
      --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$api_port" --endpoint-reconciler-type=none \
      --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
      --authorization-mode=Node,RBAC --allow-privileged=true --anonymous-auth=true \
      --service-cluster-ip-range=10.96.0.0/16 --service-account-issuer=https://kubernetes.default.svc.cluster.local \
      --service-account-key-file="$pki/service-account.pub" --service-account-signing-key-file="$pki/service-account.key" \
      --requestheader-client-ca-file="$pki/front-proxy-ca.crt" --requestheader-allowed-names=front-proxy-client \
      --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
      --requestheader-extra-headers-prefix=X-Remote-Extra- --enable-aggregator-routing=true \
      --proxy-client-cert-file="$pki/front-proxy-client.crt" --proxy-client-key-file="$pki/front-proxy-client.key" \
      --kubelet-client-certificate="$pki/admin.crt" --kubelet-client-key="$pki/admin.key" \
      --kubelet-preferred-address-types=InternalIP \
      "${audit_args[@]}" "${apiserver_args[@]}"
  fi
  until_ready kube-apiserver 120 http_ok --cacert "$pki/ca.crt" --cert "$pki/admin.crt" --key "$pki/admin.key" "$url/readyz"
}

# By default the two below are throttled to 20 requests a second: 300 pods took 18 s instead of 2 s.
unthrottled=(--kube-api-qps=500 --kube-api-burst=1000)

start_kube-controller-manager() {
  if ! pid_of kube-controller-manager >/dev/null; then
    launch kube-controller-manager "$bin/kube-controller-manager" --kubeconfig="$dir/kcm.kubeconfig" \
      --authentication-kubeconfig="$dir/kcm.kubeconfig" --authorization-kubeconfig="$dir/kcm.kubeconfig" \
      --bind-address=127.0.0.1 --secure-port="$kcm_port" \
      --tls-cert-file="$pki/loopback.crt" --tls-private-key-file="$pki/loopback.key" \
      --leader-elect=false "${unthrottled[@]}" --controllers="$kcm" --use-service-account-credentials=true \
      --service-account-private-key-file="$pki/service-account.key" --root-ca-file="$pki/ca.crt" \
      --cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key"
  fi
  until_ready kube-controller-manager 60 http_ok --cacert "$pki/ca.crt" "https://127.0.0.1:$kcm_port/healthz"
}

start_kube-scheduler() {
  if ! pid_of kube-scheduler >/dev/null; then
    launch kube-scheduler "$bin/kube-scheduler" --kubeconfig="$dir/scheduler.kubeconfig" \
      --authentication-kubeconfig="$dir/scheduler.kubeconfig" --authorization-kubeconfig="$dir/scheduler.kubeconfig" \
      --bind-address=127.0.0.1 --secure-port="$scheduler_port" \
      --tls-cert-file="$pki/loopback.crt" --tls-private-key-file="$pki/loopback.key" \
      --leader-elect=false "${unthrottled[@]}"
  fi
  until_ready kube-scheduler 60 http_ok --cacert "$pki/ca.crt" "https://127.0.0.1:$scheduler_port/healthz"
}

start_kwok() {
  if ! pid_of kwok >/dev/null; then
    launch kwok "$bin/kwok" --config="$here/control-plane/stages.yaml" --kubeconfig="$dir/kubeconfig" \
      --server-address="127.0.0.1:$kwok_port" --node-ip=127.0.0.1 \
      --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake --node-lease-duration-seconds=40
  fi
  until_ready kwok 60 http_ok "http://127.0.0.1:$kwok_port/healthz"
  local node
  for ((node = 0; node < kwok; node++)); do
    cat <<YAML
---
apiVersion: v1
kind: Node
metadata:
  name: node-$node
  annotations: {kwok.x-k8s.io/node: fake, node.alpha.kubernetes.io/ttl: "0"}
  labels: {type: kwok, kubernetes.io/hostname: node-$node, kubernetes.io/os: linux, kubernetes.io/arch: amd64}
status:
  allocatable: {cpu: "32", memory: 256Gi, pods: "1000"}
  capacity: {cpu: "32", memory: 256Gi, pods: "1000"}
YAML
  done | kubectl_admin apply --server-side -f - >/dev/null
}

start_toxiproxy() {
  if ! pid_of toxiproxy >/dev/null; then
    launch toxiproxy "$bin/toxiproxy-server" -host 127.0.0.1 -port "$toxiproxy_port"
  fi
  until_ready toxiproxy 20 http_ok "http://127.0.0.1:$toxiproxy_port/version"
  http_ok "http://127.0.0.1:$toxiproxy_port/proxies/apiserver" 2>/dev/null ||
    http_ok -X POST "http://127.0.0.1:$toxiproxy_port/proxies" -d \
      "{\"name\": \"apiserver\", \"listen\": \"127.0.0.1:$proxy_port\", \"upstream\": \"127.0.0.1:$api_port\", \"enabled\": true}"
}

start_registry() {
  if [ ! -e "$dir/registry.password" ]; then
    openssl rand -hex 12 >"$dir/registry.password"
    # bcrypt by crypt(3): the registry accepts nothing else, and every Debian has perl.
    perl -e 'chomp(my $password = <STDIN>); my @c = ("a".."z", "A".."Z", 0..9);
      my $hash = crypt($password, "\$2y\$05\$" . join("", map { $c[rand @c] } 1..21) . "u");
      die "crypt(3) has no bcrypt\n" unless $hash =~ /^\$2y/; print "hangar:$hash\n"' \
      <"$dir/registry.password" >"$dir/htpasswd"
    cat >"$dir/registry.yaml" <<YAML
version: 0.1
log: {level: info}
storage: {filesystem: {rootdirectory: $dir/registry}, delete: {enabled: true}}
auth: {htpasswd: {realm: hangar, path: $dir/htpasswd}}
http: {addr: "127.0.0.1:$registry_port"}
YAML
  fi
  if ! pid_of registry >/dev/null; then
    launch registry "$docker_registry" serve "$dir/registry.yaml"
  fi
  until_ready registry 20 http_ok -u "hangar:$(<"$dir/registry.password")" "http://127.0.0.1:$registry_port/v2/"
}

# ---------------------------------------------------------------- commands

not_built() {
  printf 'error: %s\n' "$*" >&2
  exit 77
}

find_programs() {
  bin=${bin:-${HANGAR_TOOLS_DIR:-$("$here/build-tools.sh" --print-dir)}}
  local program
  for program in etcd kube-apiserver kubectl ${kcm:+kube-controller-manager} ${scheduler:+kube-scheduler} \
    ${kwok:+kwok} ${proxy:+toxiproxy-server}; do
    [ -x "$bin/$program" ] || not_built "the control plane's programs are not built: no $bin/$program (run make deps)"
  done
  docker_registry=$(command -v docker-registry || true)
  if [ -n "$registry" ] && [ -z "$docker_registry" ]; then not_built "no docker-registry (run make deps)"; fi
}

# Removes only instances, whatever DIR was given.
is_instance() { [ -n "$dir" ] && [ -e "$dir/hangar-control-plane" ]; }
need_instance() {
  [ -n "$dir" ] || die "which instance? use --dir or set HANGAR_CP_DIR"
  is_instance || die "$dir is not a control plane"
}
lock_instance() {
  exec 9>>"$dir/hangar-control-plane"
  flock 9
}

up() {
  find_programs
  umask 077
  if [ -z "$dir" ]; then dir=$(mktemp -d "${TMPDIR:-/tmp}/hangar-cp-XXXXXX"); fi
  mkdir -p "$dir"
  dir=$(readlink -f "$dir")
  if ! is_instance; then
    [ -z "$(ls -A "$dir")" ] || die "$dir is neither empty nor a control plane"
    touch "$dir/hangar-control-plane"
    trap 'down_after_failure' EXIT
    trap 'exit 130' INT TERM HUP
  fi
  lock_instance
  pki=$dir/pki log=${log:-$dir/log}
  mkdir -p "$pki" "$log" "$dir/run"
  log=$(readlink -f "$log")
  choose_ports
  read_ports
  declare -p kcm scheduler kwok proxy registry audit apiserver_args log bin >"$dir/options"
  write_env

  # First, so that it also ends an instance whose start was killed halfway.
  if [ -n "$watch_pid" ]; then
    started "$watch_pid" >/dev/null || die "--watch-pid: no process $watch_pid"
    HANGAR_CP_DIR=$dir launch "watch-$watch_pid" "$self" __watch "$watch_pid"
  fi
  make_pki
  timed etcd
  timed kube-apiserver
  if [ -n "$kcm" ]; then timed kube-controller-manager; fi
  if [ -n "$scheduler" ]; then timed kube-scheduler; fi
  if [ -n "$kwok" ]; then timed kwok; fi
  if [ -n "$proxy" ]; then timed toxiproxy; fi
  if [ -n "$registry" ]; then timed registry; fi
  trap - EXIT
  echo "$dir"
}
timed() {
  local before=${EPOCHREALTIME/./} after
  "start_$1"
  after=${EPOCHREALTIME/./}
  printf '    %-24s ready after %5d ms\n' "$1" $(((after - before) / 1000)) >&2
}
down_after_failure() {
  say "could not start the control plane; ending what runs"
  remove_instance || true
}

# One KEY=VALUE a line, for programs; `env` prints the same for a shell.
write_env() {
  cat >"$dir/env" <<ENV
KUBECONFIG=$dir/kubeconfig
HANGAR_CP_DIR=$dir
HANGAR_CP_URL=$url
HANGAR_CP_CA=$pki/ca.crt
HANGAR_CP_CERT=$pki/admin.crt
HANGAR_CP_KEY=$pki/admin.key
HANGAR_CP_ETCD=http://127.0.0.1:$etcd_port
HANGAR_CP_LOG_DIR=$log
HANGAR_CP_KUBECTL=$bin/kubectl
ENV
  if [ -n "$proxy" ]; then
    cat >>"$dir/env" <<ENV
HANGAR_CP_PROXY_URL=$proxy_url
HANGAR_CP_PROXY_KUBECONFIG=$dir/proxy.kubeconfig
HANGAR_CP_TOXIPROXY=http://127.0.0.1:$toxiproxy_port
ENV
  fi
  if [ -n "$registry" ]; then
    cat >>"$dir/env" <<ENV
HANGAR_CP_REGISTRY=127.0.0.1:$registry_port
HANGAR_CP_REGISTRY_USER=hangar
HANGAR_CP_REGISTRY_PASSWORD_FILE=$dir/registry.password
ENV
  fi
}

# No component need end gracefully: the state is deleted too. The watchdogs end by themselves once the
# directory is gone.
remove_instance() {
  terminate KILL "${components[@]}"
  local watchdog pid
  for watchdog in "$dir"/run/watch-*.pid; do
    watchdog=$(basename "$watchdog" .pid)
    if pid=$(pid_of "$watchdog") && [ "$pid" != $$ ]; then kill -KILL -- "-$pid" 2>/dev/null || true; fi
  done
  if [ -r "$dir/port" ]; then rm -f "$reserved/$(<"$dir/port")"; fi
  rm -rf --one-file-system "$dir"
}

down() {
  [ -n "$dir" ] || die "which instance? use --dir or set HANGAR_CP_DIR"
  if [ ! -e "$dir" ]; then return; fi
  need_instance
  lock_instance
  if is_instance; then remove_instance; fi
}

watch_and_end() {
  tail --pid="$1" --sleep-interval=0.3 -f /dev/null
  down
}

status() {
  local name pid down=0
  for name in "${components[@]}"; do
    case $name in
      kube-controller-manager) [ -n "$kcm" ] || continue ;;
      kube-scheduler) [ -n "$scheduler" ] || continue ;;
      kwok) [ -n "$kwok" ] || continue ;;
      toxiproxy) [ -n "$proxy" ] || continue ;;
      registry) [ -n "$registry" ] || continue ;;
    esac
    if pid=$(pid_of "$name"); then
      awk -v name="$name" -v pid="$pid" '/^VmRSS/ {rss = $2} /^VmHWM/ {peak = $2}
        END {printf "%-24s up    pid %-8d %4d MiB, at most %4d MiB\n", name, pid, rss / 1024, peak / 1024}' "/proc/$pid/status"
    else
      printf '%-24s down\n' "$name"
      down=1
    fi
  done
  return $down
}

one_component() { # SIGNAL-or-start NAME
  local name=${2:-}
  [[ " ${components[*]} " == *" $name "* ]] || die "no such component: '$name' (one of: ${components[*]})"
  lock_instance
  case $1 in
    start) "start_$name" ;;
    *) terminate "$1" "$name" ;;
  esac
}

case $command in
  up) up ;;
  down) down ;;
  __watch) watch_and_end "${rest[0]}" ;;
  status | env | kubectl | stop | kill | start)
    need_instance
    pki=$dir/pki
    read_ports
    case $command in
      status) status ;;
      env) while IFS='=' read -r name value; do printf 'export %s=%q\n' "$name" "$value"; done <"$dir/env" ;;
      kubectl) kubectl_admin "${rest[@]}" ;;
      stop) one_component TERM "${rest[@]}" ;;
      kill) one_component KILL "${rest[@]}" ;;
      start) find_programs && one_component start "${rest[@]}" ;;
    esac
    ;;
  *) usage; exit 2 ;;
esac
