#!/usr/bin/env bash
# Builds what the benchmark needs besides hangar itself, and runs it. Arguments go to bench.py.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../run_env.sh"

group=bench
for argument in "$@"; do
  if [ "$argument" = --quick ]; then group=tests; fi
done
guests $group
peer=$(peer flights flights_peer)
exec python3 bench/flights/bench.py --peer="$peer" "$@"
