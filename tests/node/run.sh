#!/usr/bin/env bash
# make test-node: the tests of this directory. Needs `make build` and `make guests`.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

export HANGAR_TOOLS_DIR HANGAR_BIN_DIR=${HANGAR_BIN_DIR:-$PWD/build/bin} HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests}
HANGAR_TOOLS_DIR=$(dev/build-tools.sh)
dev/build-node-tools.sh >/dev/null
exec /usr/bin/python3 -m pytest tests/node "$@"
