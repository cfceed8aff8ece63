#!/usr/bin/env bash
# Builds what the benchmark needs besides hangar itself, and runs it. Arguments go to bench.py.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../run_env.sh"

guests tests
guests bench bench/converter_jsonv2
peer=$(peer flights flights_peer)
exec python3 bench/conversion/bench.py --peer="$peer" "$@"
