#!/usr/bin/env bash
# Runs one benchmark: bench/NAME/run.sh, which prints a table and writes build/bench/NAME.json. Arguments after the
# name go to it: tools/bench.sh tenants --quick
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. dev/env.sh

name=${1:-}
if [ -z "$name" ] || [ ! -x "bench/$name/run.sh" ]; then
  die "which benchmark? make bench NAME=... [ARGS=\"...\"], one of: $(cd bench && printf '%s ' */ | tr -d /)"
fi
shift
mkdir -p build/bench
exec "bench/$name/run.sh" "$@"
