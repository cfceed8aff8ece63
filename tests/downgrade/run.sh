#!/usr/bin/env bash
# A host of an older version takes over from this one and gives back to it: tests/e2e/test_downgrade.py.
#
#   tests/downgrade/run.sh [REVISION]   of which version; dev/build-older.sh says which one it is if none is named
#
# Needs `make build` and `make guests`. Where HANGAR_OLDER_BIN_DIR names built programs, nothing is built.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

export HANGAR_TOOLS_DIR HANGAR_OLDER_BIN_DIR HANGAR_BIN_DIR=${HANGAR_BIN_DIR:-$PWD/build/bin} HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests}
dev/setup.sh --tests
HANGAR_TOOLS_DIR=$(dev/build-tools.sh)
[ -n "${HANGAR_OLDER_BIN_DIR:-}" ] || HANGAR_OLDER_BIN_DIR=$(dev/build-older.sh "$@")
say "the older version: $("$HANGAR_OLDER_BIN_DIR/hangar" --version) in $HANGAR_OLDER_BIN_DIR"
exec /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/e2e/test_downgrade.py
