#!/usr/bin/env bash
# Builds the OpenTelemetry Collector of tests/e2e/test_traces.py from the module pinned in tools/collector, once:
#
#   <cache>/collector-<hash>/bin/collector
#
#   build-collector.sh               build it if it is missing, print its path
#   build-collector.sh --print-path  only print the path, whether or not it exists
#
# Only tests need it, so it is apart from the programs of build-tools.sh. It takes 2 to 3 minutes on two cores.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/env.sh"

# Change the number when this script builds differently from the same sources.
recipe=1
pins=$(cd "$here" && sha256sum tools/collector/{go.mod,go.sum,main.go}; echo "recipe $recipe $(uname -m)")
program=$HANGAR_CACHE_DIR/collector-$(sha256sum <<<"$pins" | cut -c1-16)/bin/collector

if [ "${1:-}" != --print-path ] && [ ! -x "$program" ]; then
  mkdir -p "${program%/*}"
  exec 9>"$HANGAR_CACHE_DIR/collector.lock"
  flock -n 9 || { say "another build of the collector is running, waiting for it"; flock 9; }
  command -v go >/dev/null || die "no go: run dev/setup.sh"
  if [ ! -x "$program" ]; then
    say "building the collector"
    build_go_program "$here/tools/collector" "$program" .
  fi
fi
echo "$program"
