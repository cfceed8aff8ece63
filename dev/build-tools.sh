#!/usr/bin/env bash
# Builds the programs of the local control plane from their pinned Go modules (dev/tools), once:
#
#   <cache>/tools-<hash>/bin/{etcd,kube-apiserver,...}
#
#   build-tools.sh              build what is missing, print the directory of the programs
#   build-tools.sh --print-dir  only print it, whether or not it exists
#
# The first build takes 5 to 10 minutes on two cores; everything is compiled from source that the Go
# module proxy serves and go.sum pins.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/env.sh"

pins=$(cd "$here" && sha256sum build-tools.sh tools/{ctl,node,oras,helm}/go.{mod,sum} tools/oras/main.go; uname -m)
out=$HANGAR_CACHE_DIR/tools-$(sha256sum <<<"$pins" | cut -c1-16)

if [ "${1:-}" = --print-dir ]; then
  echo "$out/bin"
  exit
fi
if [ -d "$out" ]; then
  echo "$out/bin"
  exit
fi

mkdir -p "$HANGAR_CACHE_DIR"
exec 9>"$HANGAR_CACHE_DIR/tools.lock"
flock -n 9 || { say "another build of the control plane is running, waiting for it"; flock 9; }
if [ -d "$out" ]; then
  echo "$out/bin"
  exit
fi

command -v go >/dev/null || die "no go: run dev/setup.sh"
# A build that was interrupted goes on where it stopped: this directory is kept until it is complete.
work=$out.partial
mkdir -p "$work/bin"

# build MODULE PROGRAM PACKAGE [LDFLAGS]
count=0 total=9
build() {
  count=$((count + 1))
  if [ -x "$work/bin/$2" ]; then return; fi
  say "building $2 ($count of $total)"
  (cd "$here/tools/$1" && go build -p "$HANGAR_JOBS" -mod=readonly -buildvcs=false \
    -ldflags "-s -w ${4:-}" -o "$work/bin/$2.new" "$3") 9>&-
  mv "$work/bin/$2.new" "$work/bin/$2"
}

# Without these flags the server calls itself v0.0.0-master+$Format:%H$, which clients cannot parse.
version=$(cd "$here/tools/ctl" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.} minor=${minor%%.*}
version_flags=
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  version_flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$minor"
  version_flags+=" -X $package.gitTreeState=archive -X $package.gitCommit=unknown"
  version_flags+=" -X $package.buildDate=1970-01-01T00:00:00Z"
done

for program in kube-apiserver kube-controller-manager kubectl kube-scheduler; do
  build ctl $program k8s.io/kubernetes/cmd/$program "$version_flags"
done
build ctl etcd go.etcd.io/etcd/server/v3
build ctl toxiproxy-server github.com/Shopify/toxiproxy/v2/cmd/server
build node kwok sigs.k8s.io/kwok/cmd/kwok
build oras oras-push .
# Charts are rendered for the Kubernetes that they are tried on; helm has no default that it knows.
helm_flags="-X helm.sh/helm/v3/internal/version.version=$(cd "$here/tools/helm" && go list -m -f '{{.Version}}' helm.sh/helm/v3)"
for package in helm.sh/helm/v3/pkg/chartutil helm.sh/helm/v3/pkg/lint/rules; do
  helm_flags+=" -X $package.k8sVersionMajor=1 -X $package.k8sVersionMinor=$minor"
done
build helm helm helm.sh/helm/v3/cmd/helm "$helm_flags"

mv -T "$work" "$out"
say "the control plane's programs are in $out/bin"
echo "$out/bin"
