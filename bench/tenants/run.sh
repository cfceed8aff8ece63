#!/usr/bin/env bash
# Builds what the benchmark needs besides hangar itself, and runs it. Arguments go to bench.py. Needs root.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../run_env.sh"

guests operators machines cpp
exec /usr/bin/python3 bench/tenants/bench.py "$@"
