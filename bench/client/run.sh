#!/usr/bin/env bash
# Builds both sides of the benchmark and runs it. Arguments go to bench.py.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh
export HANGAR_TOOLS_DIR PYTHONDONTWRITEBYTECODE=1
HANGAR_TOOLS_DIR=$(dev/build-tools.sh --print-dir)

build=${HANGAR_BENCH_BUILD:-build/release}
[ -e "$build/build.ninja" ] || cmake --preset release -B "$build" >/dev/null
ninja -C "$build" -j "$HANGAR_JOBS" --quiet bench_client >&2
mkdir -p build/bench/bin
(cd bench/client/peer && go build -mod=readonly -trimpath -o ../../../build/bench/bin/client_peer .)
exec python3 bench/client/bench.py --hangar="$build/bin/bench_client" --peer=build/bench/bin/client_peer "$@"
