#!/usr/bin/env bash
# Builds the programs of the local control plane from their pinned Go modules (dev/tools), each once:
#
#   <cache>/tools-<hash>/bin/{etcd,kube-apiserver,...}
#
#   build-tools.sh [PROGRAM...]  build the named programs (default: all) if they are missing, print the directory
#   build-tools.sh --missing [PROGRAM...]
#                                print which ones are missing
#   build-tools.sh --print-dir   only print the directory, whether or not it exists
#
# All of them take 5 to 10 minutes on two cores. They are compiled from sources that the Go module proxy serves
# and go.sum pins.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/env.sh"

# Change the number when this script builds differently from the same sources.
recipe=1
pins=$(cd "$here" && sha256sum tools/{ctl,kwok,oras,helm}/go.{mod,sum} tools/oras/main.go; echo "recipe $recipe $(uname -m)")
bin=$HANGAR_CACHE_DIR/tools-$(sha256sum <<<"$pins" | cut -c1-16)/bin

command=build
case ${1:-} in
  --print-dir | --missing) command=${1#--} && shift ;;
esac
if [ $command = print-dir ]; then
  echo "$bin"
  exit
fi

wanted=("$@")
if [ ${#wanted[@]} = 0 ]; then
  wanted=(kube-apiserver kube-controller-manager kubectl kube-scheduler etcd toxiproxy-server kwok oras-push helm)
fi
# missing: prints the wanted programs that do not exist yet.
missing() {
  local program
  for program in "${wanted[@]}"; do
    [ -x "$bin/$program" ] || echo "$program"
  done
}
if [ $command = missing ] || [ -z "$(missing)" ]; then
  if [ $command = missing ]; then missing; else echo "$bin"; fi
  exit
fi

mkdir -p "$bin"
exec 9>"$HANGAR_CACHE_DIR/tools.lock"
flock -n 9 || { say "another build of the control plane is running, waiting for it"; flock 9; }
command -v go >/dev/null || die "no go: run dev/setup.sh"
# Programs that another process has built meanwhile are not built again.
mapfile -t wanted < <(missing)

# go_build MODULE PROGRAM PACKAGE [LDFLAGS]
go_build() { build_go_program "$here/tools/$1" "$bin/$2" "$3" "${4:-}"; }

kubernetes_flags=$(cd "$here/tools/ctl" && kubernetes_version_flags)
# Without these flags helm would render charts for a Kubernetes that is not the one of the control plane.
helm_flags() {
  local package minor
  minor=$(cd "$here/tools/ctl" && go list -m -f '{{.Version}}' k8s.io/kubernetes | cut -d. -f2)
  echo "-X helm.sh/helm/v3/internal/version.version=$(cd "$here/tools/helm" && go list -m -f '{{.Version}}' helm.sh/helm/v3)"
  for package in helm.sh/helm/v3/pkg/chartutil helm.sh/helm/v3/pkg/lint/rules; do
    echo "-X $package.k8sVersionMajor=1 -X $package.k8sVersionMinor=$minor"
  done
}

count=0
for program in "${wanted[@]}"; do
  count=$((count + 1))
  say "building $program ($count of ${#wanted[@]})"
  case $program in
    kube-apiserver | kube-controller-manager | kubectl | kube-scheduler)
      go_build ctl "$program" "k8s.io/kubernetes/cmd/$program" "$kubernetes_flags"
      ;;
    etcd) go_build ctl etcd go.etcd.io/etcd/server/v3 ;;
    toxiproxy-server) go_build ctl toxiproxy-server github.com/Shopify/toxiproxy/v2/cmd/server ;;
    kwok) go_build kwok kwok sigs.k8s.io/kwok/cmd/kwok ;;
    oras-push) go_build oras oras-push . ;;
    helm) go_build helm helm helm.sh/helm/v3/cmd/helm "$(helm_flags | tr '\n' ' ')" ;;
    *) die "no program $program is known" ;;
  esac
done
echo "$bin"
