#!/usr/bin/env bash
# Builds what the benchmark needs besides hangar itself, and runs it. Arguments go to bench.py.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh
export HANGAR_TOOLS_DIR HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests} PYTHONDONTWRITEBYTECODE=1
HANGAR_TOOLS_DIR=$(dev/build-tools.sh --print-dir)

examples/build.sh "$HANGAR_GUESTS_DIR" operators >&2
exec python3 bench/recorder/bench.py "$@"
