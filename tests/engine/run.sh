#!/usr/bin/env bash
# A host is replaced in place by one with another engine, and back again: tests/e2e/test_other_engine.py.
#
#   tests/engine/run.sh
#
# Needs `make guests`. Builds the programs twice, without optimisation; most files are the same and are compiled once.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

export HANGAR_TOOLS_DIR HANGAR_BIN_DIR=$PWD/build/test/bin HANGAR_OTHER_BIN_DIR=$PWD/build/other-engine/bin HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests}
dev/setup.sh --tests
HANGAR_TOOLS_DIR=$(dev/build-tools.sh)
cmake --preset test >/dev/null
cmake --preset test -B build/other-engine -DHANGAR_OTHER_ENGINE=ON >/dev/null
for build in test other-engine; do
  ninja -C "build/$build" -j "$HANGAR_JOBS" --quiet hangar hangar-compile hangar-guest
done
exec /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/e2e/test_other_engine.py
