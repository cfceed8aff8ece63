#!/usr/bin/env bash
# Builds what the benchmark needs besides hangar itself, and runs it. Arguments go to bench.py.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../run_env.sh"

guests machines
machine=$(program bench_machine)
peer=$(peer workflows machine_peer)
exec python3 bench/workflows/bench.py --machine="$machine" --peer="$peer" "$@"
