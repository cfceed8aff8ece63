#!/usr/bin/env bash
# make soak: an hour of a busy cluster. Needs `make build`, `make guests` and root. Arguments go to soak.py.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

export HANGAR_TOOLS_DIR HANGAR_BIN_DIR=${HANGAR_BIN_DIR:-$PWD/build/bin} HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests} PYTHONDONTWRITEBYTECODE=1
dev/setup.sh --tests
HANGAR_TOOLS_DIR=$(dev/build-tools.sh)
exec /usr/bin/python3 tests/soak/soak.py "$@"
