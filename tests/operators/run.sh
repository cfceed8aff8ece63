#!/usr/bin/env bash
# A Go operator of another project, from the Go module proxy: JobSet does the same in hangar as in a process of its own.
# Needs `make build`, and about 5 GB for what the go command downloads and compiles. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

export HANGAR_TOOLS_DIR HANGAR_BIN_DIR=${HANGAR_BIN_DIR:-$PWD/build/bin} PYTHONDONTWRITEBYTECODE=1
dev/setup.sh --tests
HANGAR_TOOLS_DIR=$(dev/build-tools.sh)
exec /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/operators "$@"
