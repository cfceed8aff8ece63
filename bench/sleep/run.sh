#!/usr/bin/env bash
# Builds the simulation, and runs it. Arguments go to bench.py.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../run_env.sh"

simulation=$(program sleep_simulation)
exec python3 bench/sleep/bench.py --simulation="$simulation" "$@"
