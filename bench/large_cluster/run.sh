#!/usr/bin/env bash
# Builds what the benchmark needs besides hangar itself, and runs it. Arguments go to bench.py.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../run_env.sh"

guests operators
peer=$(peer client client_peer)
exec python3 bench/large_cluster/bench.py --peer="$peer" "$@"
