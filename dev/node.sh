#!/usr/bin/env bash
# A real node for a control plane of dev/control-plane.sh: kubelet and containerd, which run real pods.
#
#   node.sh check                      check that this machine can run a node; if not, say why and exit 77
#   node.sh up --dir DIR [options]     start the node of the control plane in DIR, wait until it is Ready
#   node.sh down --dir DIR             stop the node and all of its pods
#   node.sh exec --dir DIR -- COMMAND  run COMMAND in the node
#   node.sh load --dir DIR FILE...     import images (docker or OCI archives) into the node's containerd
#   node.sh image REFERENCE DIRECTORY ENTRYPOINT-JSON FILE
#                                      make an image with one layer; needs only tar and sha256sum
#
# Options of `up`:
#   --containerd=1.6|2    version of containerd (default 2)
#
# The control plane needs --with-kcm --with-scheduler --with-proxy. The node is a set of namespaces (mount, pid,
# uts, ipc, cgroup) whose root is an overlay: below it this machine's /, above it a tmpfs. What kubelet,
# containerd and privileged pods write, restart and kill stays inside and is gone with the node. The network is
# the machine's, with one more bridge. On that bridge the API server also has its service address 10.96.0.1, and
# the registry, if there is one, 10.97.0.1:5000; so there can be only one node at a time. There is no kube-proxy
# and no cluster DNS, and pods cannot reach other networks.
#
# Needs root and cgroups. In the node, `systemctl` supports what an installer needs: restart and is-active of
# containerd and kubelet. The node stops by itself when DIR has been deleted.
set -euo pipefail
self=$(readlink -f "${BASH_SOURCE[0]}")
here=$(dirname "$self")
. "$here/env.sh"

usage() { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$self" >&2; }

command=${1:-}
[ $# = 0 ] || shift
dir=${HANGAR_CP_DIR:-} containerd=2 rest=()
while [ $# -gt 0 ]; do
  case $1 in
    --dir) dir=$2; shift ;;
    --dir=*) dir=${1#*=} ;;
    --containerd=*) containerd=${1#*=} ;;
    --) shift; rest+=("$@"); break ;;
    -*) usage; die "unknown option $1" ;;
    *) rest+=("$1") ;;
  esac
  shift
done

node_name=hangar-node bridge=hangar-node
service_address=10.96.0.1 # of the Service `kubernetes`, first of the control plane's range
pod_net=10.97.0.0/24 node_address=10.97.0.1
registry=$node_address:5000

state=$dir/node root=$dir/node/root tools=
find_tools() {
  tools=${HANGAR_NODE_TOOLS_DIR:-$("$here/build-node-tools.sh" --print-dir)}
  cluster_tools=${HANGAR_TOOLS_DIR:-$("$here/build-tools.sh" --print-dir)}
}

# ---------------------------------------------------------------- what the machine has to have

lacking() {
  local directory
  if [ "$(id -u)" != 0 ]; then echo "this user is not root"; fi
  find_tools
  if [ ! -d "$tools" ]; then echo "the node's programs are not built (run dev/build-node-tools.sh)"; fi
  for program in unshare nsenter pivot_root ip openssl; do
    if ! command -v $program >/dev/null; then echo "there is no $program (util-linux, iproute2, openssl)"; fi
  done
  case $(ldconfig -p) in
    *libseccomp.so.2*) ;;
    *) echo "there is no libseccomp2, which runc needs" ;;
  esac
  if [ "$(id -u)" != 0 ]; then return; fi
  if ! unshare --mount --pid --uts --ipc --cgroup --fork true 2>/dev/null; then echo "namespaces cannot be made"; fi
  # A directory that is on the machine's own disk: an overlay cannot lie on another one.
  directory=$(mktemp -d "${dir:-${TMPDIR:-/tmp}}/hangar-overlay-XXXXXX")
  unshare --mount sh -c 'mount -t tmpfs tmpfs "$0" && mkdir "$0/up" "$0/work" "$0/root" &&
    mount -t overlay -o "lowerdir=/,upperdir=$0/up,workdir=$0/work" overlay "$0/root"' "$directory" 2>/dev/null ||
    echo "an overlay over / cannot be mounted"
  rmdir "$directory"
  if ! ip link add hangar-try type bridge 2>/dev/null; then echo "no bridge can be made"; else ip link del hangar-try; fi
  if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then
    if ! grep -qw memory /sys/fs/cgroup/cgroup.controllers; then echo "cgroup v2 has no memory controller here"; fi
    if [ ! -w /sys/fs/cgroup/cgroup.procs ]; then echo "cgroups are read-only"; fi
  elif [ ! -w /sys/fs/cgroup/memory/cgroup.procs ]; then
    echo "cgroups are read-only"
  fi
}
check() {
  local lacks
  lacks=$(lacking)
  if [ -z "$lacks" ]; then return; fi
  sed 's/^/error: no real node on this machine: /' <<<"$lacks" >&2
  exit 77
}

# ---------------------------------------------------------------- images

make_image() { # REFERENCE DIRECTORY ENTRYPOINT-JSON FILE
  local work layer config
  work=$(mktemp -d)
  tar -C "$2" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf "$work/layer.tar" .
  layer=$(sha256sum <"$work/layer.tar" | cut -d' ' -f1)
  cat >"$work/config" <<JSON
{"architecture": "$(dpkg --print-architecture)", "os": "linux", "config": {"Entrypoint": $3, "WorkingDir": "/"},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$layer"]}, "history": [{"created": "1970-01-01T00:00:00Z"}]}
JSON
  config=$(sha256sum <"$work/config" | cut -d' ' -f1).json
  mv "$work/config" "$work/$config"
  echo "[{\"Config\": \"$config\", \"RepoTags\": [\"$1\"], \"Layers\": [\"layer.tar\"]}]" >"$work/manifest.json"
  tar -C "$work" -cf "$4" manifest.json "$config" layer.tar
  rm -rf "$work"
}

# localhost/hangar-node/busybox:1 for tests, localhost/hangar-node/pause:1 for sandboxes.
make_own_images() {
  local box=$state/busybox applet
  mkdir -p "$box"/{bin,etc,tmp,proc,sys,dev,root,usr/bin}
  chmod 1777 "$box/tmp"
  install -m 755 "$tools/bin/busybox" "$box/bin/"
  for applet in $("$tools/bin/busybox" --list); do
    if [ "$applet" != busybox ]; then ln -sf busybox "$box/bin/$applet"; fi
  done
  echo 'root:x:0:0:root:/root:/bin/sh' >"$box/etc/passwd"
  echo 'root:x:0:' >"$box/etc/group"
  make_image localhost/hangar-node/busybox:1 "$box" '["/bin/sh"]' "$state/images/busybox.tar"
  make_image localhost/hangar-node/pause:1 "$box" '["/bin/sleep", "infinity"]' "$state/images/pause.tar"
}

# ---------------------------------------------------------------- credentials and configuration

make_credentials() {
  local pki=$dir/pki
  if [ -e "$state/kubeconfig" ]; then return; fi
  openssl req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
    -subj "/O=system:nodes/CN=system:node:$node_name" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" \
    -keyout "$state/kubelet.key" -out "$state/kubelet.crt" -addext basicConstraints=critical,CA:FALSE \
    -addext keyUsage=critical,digitalSignature -addext extendedKeyUsage=clientAuth 2>"$state/openssl.log" ||
    { cat "$state/openssl.log" >&2; die "openssl failed"; }
  cat >"$state/kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: local, cluster: {server: "$HANGAR_CP_URL", certificate-authority: $pki/ca.crt}}]
users: [{name: kubelet, user: {client-certificate: $state/kubelet.crt, client-key: $state/kubelet.key}}]
contexts: [{name: local, context: {cluster: local, user: kubelet}}]
current-context: local
YAML
}

# Both containerds read the same settings from different tables.
containerd_config() {
  local images runtime=io.containerd.grpc.v1.cri version=2 stream
  stream="stream_server_address = \"127.0.0.1\"
  stream_server_port = \"$((base_port + 9))\""
  if [ "$containerd" = 2 ]; then
    version=3 runtime=io.containerd.cri.v1.runtime
    images="[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'localhost/hangar-node/pause:1'
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = '/etc/containerd/certs.d'
[plugins.'io.containerd.grpc.v1.cri']
  $stream"
    stream=
  else
    images="[plugins.'$runtime'.registry]
  config_path = '/etc/containerd/certs.d'"
    stream="sandbox_image = 'localhost/hangar-node/pause:1'
  $stream"
  fi
  cat <<TOML
# The configuration of this node's containerd. Comments like this one have to survive an installer.
version = $version

[plugins.'$runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
  $stream
[plugins.'$runtime'.containerd]
  default_runtime_name = 'runc'
[plugins.'$runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'$runtime'.containerd.runtimes.runc.options]
  BinaryName = '$tools/bin/runc'
  SystemdCgroup = false
$images
TOML
}

kubelet_config() {
  cat <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $node_address
port: $((base_port + 10))
healthzBindAddress: 127.0.0.1
healthzPort: $((base_port + 11))
readOnlyPort: 0
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $dir/pki/ca.crt}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
protectKernelDefaults: true
makeIPTablesUtilChains: false
hairpinMode: none
oomScoreAdj: 0
enforceNodeAllocatable: [pods]
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%, imagefs.inodesFree: 0%}
nodeStatusUpdateFrequency: 5s
syncFrequency: 5s
YAML
}

# ---------------------------------------------------------------- inside

# A cgroup of the node's own below this process's, in every hierarchy. The first line of each is read before any
# process moves.
enter_cgroups() {
  local mine controllers path parent own
  mine=$(</proc/self/cgroup)
  while IFS=: read -r _ controllers path; do
    if [ -z "$controllers" ]; then
      if [ "$(stat -fc %T /sys/fs/cgroup)" != cgroup2fs ]; then continue; fi
      own=/sys/fs/cgroup${path%/}/$node_name
      mkdir -p "$own/init"
      echo 0 >"$own/init/cgroup.procs"
    else
      parent=/sys/fs/cgroup/${controllers#name=}${path%/}
      if [ ! -d "$parent" ]; then continue; fi
      own=$parent/$node_name
      mkdir -p "$own"
      if [ -e "$own/cpuset.cpus" ]; then
        cat "$parent/cpuset.cpus" >"$own/cpuset.cpus"
        cat "$parent/cpuset.mems" >"$own/cpuset.mems"
        echo 1 >"$own/cgroup.clone_children"
      fi
      echo 0 >"$own/cgroup.procs"
    fi
    echo "$own" >>"$state/cgroups"
  done <<<"$mine"
}

mount_cgroups() {
  local controllers name controller
  if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup" # this cgroup namespace's root is the node's
    for controller in $(<"$root/sys/fs/cgroup/cgroup.controllers"); do
      echo "+$controller" >"$root/sys/fs/cgroup/cgroup.subtree_control" || true
    done
    return
  fi
  mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
  while IFS=: read -r _ controllers _; do
    if [ -z "$controllers" ]; then continue; fi
    name=${controllers#name=}
    mkdir -p "$root/sys/fs/cgroup/$name"
    if [ "$name" != "$controllers" ]; then controllers=none,$controllers; fi
    mount -t cgroup -o "$controllers" cgroup "$root/sys/fs/cgroup/$name"
  done </proc/self/cgroup
}

# kubelet writes to these. It gets its own files, and the machine's values stay as they are.
guard_sysctls() {
  local entry file
  for entry in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    file=$root/run/sysctl-${entry//[\/=]/-}
    echo "${entry#*=}" >"$file"
    mount --bind "$file" "$root/proc/sys/${entry%=*}"
  done
}

write_systemctl() {
  cat >"$root/usr/bin/systemctl" <<SH
#!/bin/sh
# This node has no systemd, only the commands that an installer needs. A restart returns when the service answers.
case "\$1 \$2" in
  "restart containerd" | "restart containerd.service")
    old=\$(cat /run/containerd.pid)
    kill "\$old"
    for try in \$(seq 600); do
      if [ "\$(cat /run/containerd.pid)" != "\$old" ] && "$containerd_programs/ctr" version >/dev/null 2>&1; then exit 0; fi
      sleep 0.05
    done
    echo "containerd did not come back" >&2
    exit 1 ;;
  "restart kubelet" | "restart kubelet.service") kill "\$(cat /run/kubelet.pid)" ;;
  "is-active containerd" | "is-active containerd.service") "$containerd_programs/ctr" version >/dev/null 2>&1 && echo active ;;
  "daemon-reload ") ;;
  *) echo "systemctl: this node does not know: \$*" >&2; exit 1 ;;
esac
SH
  chmod 755 "$root/usr/bin/systemctl"
}

# Process 1 of the node: makes its root, then starts the two services and restarts them when they end.
inside() {
  local shared
  mount --make-rprivate /
  mount -t tmpfs -o mode=755 tmpfs "$state/overlay"
  mkdir "$state/overlay/up" "$state/overlay/work"
  mount -t overlay -o "lowerdir=/,upperdir=$state/overlay/up,workdir=$state/overlay/work" overlay "$root"
  mkdir -p "$root$dir" "$root"/var/lib/{containerd,kubelet} "$root"/etc/{containerd,cni/net.d} \
    "$root/opt/cni/bin" "$root/var/log/pods"
  mount --bind "$dir" "$root$dir"
  # On the machine's disk: an overlay of containerd cannot be on the node's own.
  for shared in containerd kubelet; do
    mount --bind "$state/$shared" "$root/var/lib/$shared"
  done
  mount -t proc proc "$root/proc"
  mount -t sysfs sysfs "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  mount_cgroups
  guard_sysctls
  hostname "$node_name"
  rm -rf "$root/etc/containerd" && mkdir -p "$root/etc/containerd"
  containerd_config >"$root/etc/containerd/config.toml"
  if [ -d "$state/certs.d" ]; then cp -r "$state/certs.d" "$root/etc/containerd/"; fi
  kubelet_config >"$root/var/lib/kubelet/config.yaml"
  cp "$tools"/cni/* "$root/opt/cni/bin/"
  cat >"$root/etc/cni/net.d/10-hangar.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "hangar", "plugins": [{"type": "bridge", "bridge": "$bridge", "isGateway": false,
 "ipMasq": false, "ipam": {"type": "host-local", "ranges": [[{"subnet": "$pod_net", "rangeStart": "${node_address%.*}.10",
 "gateway": "$node_address"}]], "routes": [{"dst": "0.0.0.0/0", "gw": "$node_address"}]}}]}
JSON
  write_systemctl
  cd "$root"
  mkdir -p .old
  pivot_root . .old
  cd /
  umount -l /.old
  rmdir /.old
  mount --make-rshared /

  declare -A pids=()
  start_service containerd
  until ctr version >/dev/null 2>&1; do
    kill -0 "${pids[containerd]}" || exit 1
    sleep 0.05
  done
  for image in "$state"/images/*.tar; do ctr --namespace k8s.io images import "$image"; done
  start_service kubelet
  trap 'exit 0' TERM
  local name
  while :; do
    wait -n 2>/dev/null || true
    for name in "${!pids[@]}"; do
      if ! kill -0 "${pids[$name]}" 2>/dev/null; then
        echo "starting $name again"
        start_service "$name"
      fi
    done
    sleep 0.1
  done
}
start_service() {
  case $1 in
    containerd) containerd --config /etc/containerd/config.toml >>"$state/containerd.log" 2>&1 </dev/null & ;;
    kubelet)
      kubelet --config=/var/lib/kubelet/config.yaml --kubeconfig="$state/kubeconfig" --root-dir=/var/lib/kubelet \
        --cert-dir=/var/lib/kubelet/pki --hostname-override="$node_name" --node-ip="$node_address" \
        >>"$state/kubelet.log" 2>&1 </dev/null & ;;
  esac
  pids[$1]=$!
  echo $! >"/run/$1.pid"
}

# ---------------------------------------------------------------- outside

# Holds the node, and cleans up after its end: when it is told to end, or when DIR is gone.
hold() {
  local child own cgroups
  enter_cgroups
  cgroups=$(<"$state/cgroups")
  unshare --mount --pid --uts --ipc --cgroup --fork --kill-child "$self" __inside --dir "$dir" &
  child=$!
  trap 'kill -KILL $child 2>/dev/null || true' TERM INT HUP
  while kill -0 $child 2>/dev/null && [ -e "$dir/hangar-control-plane" ]; do sleep 0.2; done
  kill -KILL $child 2>/dev/null || true
  wait $child 2>/dev/null || true
  ip link del "$bridge" 2>/dev/null || true
  # Leaves its cgroups, so that they are empty; the kernel needs a moment for those of the pods.
  while read -r own; do
    echo $$ >"${own%/*}/cgroup.procs" 2>/dev/null || true
    for _ in $(seq 100); do
      find "$own" -depth -type d -exec rmdir {} + 2>/dev/null || true
      if [ ! -d "$own" ]; then break; fi
      sleep 0.1
    done
  done <<<"$cgroups"
}

holder() { # the pid of hold(), if it is alive
  local pid ticks now
  { read -r pid ticks <"$state/pid"; } 2>/dev/null || return 1
  now=$(awk '{print $22}' "/proc/$pid/stat" 2>/dev/null) || return 1
  [ "$now" = "$ticks" ] && echo "$pid"
}
first_process() { # the pid of inside(), as this machine sees it
  local pid unshared
  pid=$(holder) || die "the node of $dir is not running"
  for unshared in $(<"/proc/$pid/task/$pid/children"); do
    if [ "$(<"/proc/$unshared/comm")" = unshare ]; then
      awk '{print $1}' "/proc/$unshared/task/$unshared/children"
      return
    fi
  done
  die "the node of $dir is not running"
}

prepare() {
  [ -n "$dir" ] && [ -e "$dir/hangar-control-plane" ] || die "--dir does not name a control plane"
  . "$dir/env"
  base_port=$(<"$dir/port")
  find_tools
  if [ -r "$state/version" ]; then containerd=$(<"$state/version"); fi
  containerd_programs=$tools/containerd-$containerd
  [ -x "$containerd_programs/containerd" ] || die "there is no containerd $containerd (1.6 or 2)"
  export PATH=$containerd_programs:$tools/bin:$cluster_tools:$PATH
}

is_ready() {
  "$HANGAR_CP_KUBECTL" --kubeconfig="$dir/kubeconfig" get node "$node_name" \
    -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null | grep -qx True
}

up() {
  dir=$(readlink -f "$dir") state=$dir/node root=$dir/node/root
  prepare
  check
  if holder >/dev/null; then return; fi
  [ -n "${HANGAR_CP_TOXIPROXY:-}" ] || die "the control plane has no proxy (--with-proxy), which the node reaches it through"
  ! ip link show "$bridge" >/dev/null 2>&1 || die "there is a node on this machine already (the bridge $bridge exists)"
  umask 022
  mkdir -p "$state"/{overlay,root,containerd,kubelet,images}
  chmod 755 "$dir" # pods run as other users, and what they mount is below it
  echo "$containerd" >"$state/version"
  make_credentials
  make_own_images
  write_registry
  ip link add "$bridge" type bridge
  ip address add "$node_address/24" dev "$bridge"
  ip address add "$service_address/32" dev "$bridge"
  ip link set "$bridge" up
  relay node-apiserver "$service_address:443" "${HANGAR_CP_URL#https://}"
  if [ -n "${HANGAR_CP_REGISTRY:-}" ]; then relay node-registry "$registry" "$HANGAR_CP_REGISTRY"; fi
  : >"$state/cgroups"
  setsid "$self" __hold --dir "$dir" >>"$state/node.log" 2>&1 </dev/null &
  echo "$! $(awk '{print $22}' "/proc/$!/stat")" >"$state/pid"
  local deadline=$((SECONDS + 120))
  until is_ready; do
    if ! holder >/dev/null || [ $SECONDS -ge $deadline ]; then
      tail -n 20 "$state"/{node,containerd,kubelet}.log >&2 || true
      down
      die "the node did not become ready"
    fi
    sleep 0.2
  done
}

# relay NAME LISTEN UPSTREAM: makes a service on the machine's loopback reachable for pods.
relay() {
  http_ok "$HANGAR_CP_TOXIPROXY/proxies/$1" 2>/dev/null ||
    http_ok -X POST "$HANGAR_CP_TOXIPROXY/proxies" -d \
      "{\"name\": \"$1\", \"listen\": \"$2\", \"upstream\": \"$3\", \"enabled\": true}"
}
http_ok() { curl -fsS --noproxy '*' --max-time 5 -o /dev/null "$@"; }

# The control plane's registry speaks plain HTTP.
write_registry() {
  if [ -z "${HANGAR_CP_REGISTRY:-}" ]; then return; fi
  mkdir -p "$state/certs.d/$registry"
  # containerd 1.6 reads the scheme from the table only, 2 from the first line too.
  cat >"$state/certs.d/$registry/hosts.toml" <<TOML
server = 'http://$registry'
[host.'http://$registry']
  capabilities = ['pull', 'resolve']
TOML
}

down() {
  local pid
  if ! pid=$(holder); then return; fi
  kill "$pid"
  for _ in $(seq 300); do
    if ! holder >/dev/null; then return; fi
    sleep 0.1
  done
  die "the node of $dir does not end (process $pid)"
}

enter() { # COMMAND...
  local first
  first=$(first_process)
  exec nsenter -t "$first" --mount --pid --uts --ipc --cgroup --root --wd -- env PATH="$PATH" "$@"
}

case $command in
  check) check ;;
  up) up ;;
  down) down ;;
  image) make_image "${rest[@]}" ;;
  exec) prepare; enter "${rest[@]}" ;;
  load)
    prepare
    for file in "${rest[@]}"; do
      cp "$file" "$state/images/loaded"
      (enter ctr --namespace k8s.io images import "$state/images/loaded")
      rm "$state/images/loaded"
    done
    ;;
  __hold) prepare; hold ;;
  __inside) prepare; inside ;;
  *) usage; exit 2 ;;
esac
