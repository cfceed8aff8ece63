#!/usr/bin/env bash
# A host in a cgroup of 128 MiB: an hour of churn with a hundred operators in Rust and ten in Go, a limit that is lowered, a slow disk.
# Needs root, cgroups, `make build` and `make guests`. MINUTES=N: a shorter hour. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

export HANGAR_TOOLS_DIR HANGAR_BIN_DIR=${HANGAR_BIN_DIR:-$PWD/build/bin} HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests} PYTHONDONTWRITEBYTECODE=1
export HANGAR_EDGE_MINUTES=${MINUTES:-60}
dev/setup.sh --tests
HANGAR_TOOLS_DIR=$(dev/build-tools.sh)
exec /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/edge "$@"
