#!/usr/bin/env bash
# The conformance tests on other minor versions of Kubernetes than that of make test.
#
#   tests/versions/run.sh [MINOR...]   1.35, say; all that dev/build-kubernetes.sh knows, if none is named
#
# Needs `make guests`. A version takes 3 minutes on two cores, and 10 more for its first build. The tests are those of
# `make test`, so they are not built again after it.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

minors=("$@")
if [ ${#minors[@]} = 0 ]; then mapfile -t minors < <(dev/build-kubernetes.sh --list); fi
export HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests} HANGAR_TOOLS_DIR
dev/setup.sh --tests
say "building the conformance tests"
cmake --preset test >/dev/null
mapfile -t conformance < <(ninja -C build/test -t targets all | sed -n 's/^\(conformance_[a-z_]*_tests\): .*/\1/p')
ninja -C build/test -j "$HANGAR_JOBS" --quiet "${conformance[@]}"

failed=()
for minor in "${minors[@]}"; do
  HANGAR_TOOLS_DIR=$(dev/build-kubernetes.sh "$minor")
  say "$("$HANGAR_TOOLS_DIR/kube-apiserver" --version)"
  ctest --test-dir build/test -L conformance -j "$HANGAR_JOBS" --output-on-failure || failed+=("$minor")
done
[ ${#failed[@]} = 0 ] || die "failed on Kubernetes ${failed[*]}"
say "all passed on ${minors[*]}"
