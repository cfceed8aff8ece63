#!/usr/bin/env bash
# Builds the API server and the controller manager of a minor version of Kubernetes other than that of build-tools.sh,
# once:
#
#   <cache>/kubernetes-<minor>-<hash>/bin
#
#   build-kubernetes.sh --list      print the minor versions that have modules, newest first
#   build-kubernetes.sh MINOR       build the programs if they are missing, print the directory; MINOR: such as 1.35
#
# In that directory the other programs of build-tools.sh are links (build them first), so HANGAR_TOOLS_DIR can
# name it.
# A version takes 5 to 10 minutes on two cores.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/env.sh"

if [ "${1:-}" = --list ]; then
  cd "$here/tools"
  printf '%s\n' kubernetes-1.* | sed 's/^kubernetes-//' | sort --version-sort --reverse
  exit
fi
minor=${1:?which minor version: 1.35, say}
module=tools/kubernetes-$minor
[ -d "$here/$module" ] || die "no Kubernetes $minor: there are $("$0" --list | paste -sd ' ')"
others=$("$here/build-tools.sh")

recipe=1
pins=$(cd "$here" && sha256sum "$module"/go.{mod,sum}; echo "recipe $recipe $(uname -m) $others")
out=$HANGAR_CACHE_DIR/kubernetes-$minor-$(sha256sum <<<"$pins" | cut -c1-16)/bin

mkdir -p "$out"
exec 9>"$HANGAR_CACHE_DIR/kubernetes.lock"
flock -n 9 || { say "another build of Kubernetes is running, waiting for it"; flock 9; }
for program in kube-apiserver kube-controller-manager; do
  [ -x "$out/$program" ] && continue
  say "building $program $minor"
  build_go_program "$here/$module" "$out/$program" "k8s.io/kubernetes/cmd/$program" "$(cd "$here/$module" && kubernetes_version_flags)"
done
for program in "$others"/*; do
  [ -e "$out/${program##*/}" ] || ln -s "$program" "$out/"
done
echo "$out"
