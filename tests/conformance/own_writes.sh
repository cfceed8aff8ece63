#!/usr/bin/env bash
# A guest reads its own writes, one after the other, from a cache that is five seconds behind: the test of
# tests/conformance/gateway, which `make test` runs with 200 writes.
#
#   tests/conformance/own_writes.sh [WRITES]   50000 if not given
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

export HANGAR_OWN_WRITES=${1:-50000} HANGAR_TOOLS_DIR
dev/setup.sh --tests
HANGAR_TOOLS_DIR=$(dev/build-tools.sh)
cmake --preset test >/dev/null
ninja -C build/test -j "$HANGAR_JOBS" --quiet conformance_gateway_tests
exec build/test/bin/conformance_gateway_tests \
  --gtest_filter=GatewayTest.AGuestReadsItsOwnWritesFromACacheThatIsFiveSecondsBehind
