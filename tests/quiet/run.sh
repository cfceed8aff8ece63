#!/usr/bin/env bash
# A Go operator to which nothing happens for eleven minutes, longer than client-go's watches last: tests/e2e/test_go_quiet.py.
# Needs `make build`. MINUTES=N: another time. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

export HANGAR_TOOLS_DIR HANGAR_BIN_DIR=${HANGAR_BIN_DIR:-$PWD/build/bin} HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests} PYTHONDONTWRITEBYTECODE=1
export HANGAR_QUIET_MINUTES=${MINUTES:-11}
dev/setup.sh --tests
HANGAR_TOOLS_DIR=$(dev/build-tools.sh)
mkdir -p "$HANGAR_GUESTS_DIR"
exec /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/e2e/test_go_quiet.py "$@"
