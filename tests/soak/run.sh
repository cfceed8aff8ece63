#!/usr/bin/env bash
# make soak: 100 simulated hours of faults from a seed that it prints, then an hour of a busy cluster. Needs `make build`, `make guests` and
# root. Arguments go to soak.py; with any, nothing is simulated.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

export HANGAR_TOOLS_DIR HANGAR_BIN_DIR=${HANGAR_BIN_DIR:-$PWD/build/bin} HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests} PYTHONDONTWRITEBYTECODE=1
if [ $# -eq 0 ]; then
  first=$((RANDOM * 1000 + 1))
  echo "100 simulated hours from SIMULATION_FIRST=$first on"
  SIMULATION_HOURS=100 SIMULATION_FIRST=$first tools/simulate.sh
fi
dev/setup.sh --tests
HANGAR_TOOLS_DIR=$(dev/build-tools.sh)
exec /usr/bin/python3 tests/soak/soak.py "$@"
