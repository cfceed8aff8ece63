#!/usr/bin/env bash
# make test-tenants: the tests of this directory. Needs `make build` and `make guests`. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

export HANGAR_TOOLS_DIR HANGAR_BIN_DIR=${HANGAR_BIN_DIR:-$PWD/build/bin} HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests}
dev/setup.sh --tests
HANGAR_TOOLS_DIR=$(dev/build-tools.sh)
exec /usr/bin/python3 -m pytest -p no:cacheprovider tests/tenants "$@"
