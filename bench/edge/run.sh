#!/usr/bin/env bash
# Builds what the benchmark needs besides hangar itself, and runs it. Arguments go to bench.py. Needs root and cgroups.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../run_env.sh"

guests operators go_operators
exec /usr/bin/python3 bench/edge/bench.py "$@"
