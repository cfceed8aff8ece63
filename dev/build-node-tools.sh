#!/usr/bin/env bash
# Builds or downloads the programs of a real node (dev/node.sh), once:
#
#   <cache>/node-tools-<hash>/bin      kubelet, runc, busybox
#   <cache>/node-tools-<hash>/cni      the CNI plugins bridge, host-local, loopback
#   <cache>/node-tools-<hash>/containerd-{1.6,2}  containerd, its shim, ctr
#
#   build-node-tools.sh              get the programs if they are missing, print the directory
#   build-node-tools.sh --print-dir  only print it, whether or not it exists
#
# kubelet, the plugins and containerd 2 are built from their pinned Go modules (dev/tools). containerd 1.6,
# runc and a static busybox are extracted from Debian's packages, because installing those would start services.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/env.sh"

pins=$(cd "$here" && sha256sum build-node-tools.sh tools/{ctl,node}/go.{mod,sum}; uname -m)
out=$HANGAR_CACHE_DIR/node-tools-$(sha256sum <<<"$pins" | cut -c1-16)

if [ "${1:-}" != --print-dir ] && [ ! -d "$out" ]; then
  mkdir -p "$HANGAR_CACHE_DIR"
  exec 9>"$HANGAR_CACHE_DIR/node-tools.lock"
  flock 9
fi
if [ "${1:-}" = --print-dir ] || [ -d "$out" ]; then
  echo "$out"
  exit
fi

command -v go >/dev/null || die "no go: run dev/setup.sh"
# An interrupted build continues where it stopped: this directory is kept until it is complete.
work=$out.partial
mkdir -p "$work"/{bin,cni,containerd-1.6,containerd-2}

# build MODULE PROGRAM PACKAGE [LDFLAGS]: PROGRAM is a path below $work.
build() {
  if [ -x "$work/$2" ]; then return; fi
  say "building ${2##*/}"
  build_go_program "$here/tools/$1" "$work/$2" "$3" "${4:-}"
}

build ctl bin/kubelet k8s.io/kubernetes/cmd/kubelet "$(cd "$here/tools/ctl" && kubernetes_version_flags)"

plugins=github.com/containernetworking/plugins/plugins
build node cni/bridge $plugins/main/bridge
build node cni/loopback $plugins/main/loopback
build node cni/host-local $plugins/ipam/host-local

containerd=github.com/containerd/containerd/v2
containerd_version=$(cd "$here/tools/node" && go list -m -f '{{.Version}}' $containerd)
for program in containerd containerd-shim-runc-v2 ctr; do
  build node containerd-2/$program $containerd/cmd/$program "-X $containerd/version.Version=$containerd_version"
done

# from_debian PACKAGE DIRECTORY PATH...: extracts files from a package without installing it.
from_debian() {
  local package=$1 directory=$2 path
  shift 2
  say "unpacking Debian's $package"
  rm -rf "$work/debian"
  mkdir "$work/debian"
  (cd "$work/debian" && apt-get download -q "$package" >&2 && dpkg-deb -x "$package"_*.deb root) 9>&-
  for path in "$@"; do
    install -m 755 "$work/debian/root/$path" "$work/$directory/"
  done
  rm -rf "$work/debian"
}
from_debian containerd containerd-1.6 usr/bin/{containerd,containerd-shim-runc-v2,ctr}
from_debian runc bin usr/sbin/runc
from_debian busybox-static bin bin/busybox

mv -T "$work" "$out"
say "the node's programs are in $out"
echo "$out"
