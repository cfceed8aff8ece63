#!/usr/bin/env bash
# The programs for aarch64: what they are, and a board with Debian's kernel under qemu-system, whose host works for a control plane
# outside. Needs `make static ARCH=aarch64` and `make guests`. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

export HANGAR_TOOLS_DIR HANGAR_BIN_DIR=$PWD/build/static-aarch64 HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests} PYTHONDONTWRITEBYTECODE=1
dev/setup.sh --tests
dev/setup.sh --aarch64
HANGAR_TOOLS_DIR=$(dev/build-tools.sh)
exec /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/aarch64 "$@"
