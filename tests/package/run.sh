#!/usr/bin/env bash
# The Debian package as its users have it: linted, installed on a bare Debian 12, started by its systemd, purged.
# Needs root, `make build` and `make guests`. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

export HANGAR_TOOLS_DIR HANGAR_BIN_DIR=${HANGAR_BIN_DIR:-$PWD/build/bin} HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests}
dev/setup.sh --package
HANGAR_TOOLS_DIR=$(dev/build-tools.sh)
exec /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/package "$@"
