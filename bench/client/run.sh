#!/usr/bin/env bash
# Builds both sides of the benchmark and runs it. Arguments go to bench.py.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../run_env.sh"

hangar=$(program bench_client)
peer=$(peer client client_peer)
exec python3 bench/client/bench.py --hangar="$hangar" --peer="$peer" "$@"
