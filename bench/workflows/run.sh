#!/usr/bin/env bash
# Builds what the benchmark needs besides hangar itself, and runs it. Arguments go to bench.py.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh
export HANGAR_TOOLS_DIR HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests} PYTHONDONTWRITEBYTECODE=1
HANGAR_TOOLS_DIR=$(dev/build-tools.sh --print-dir)

examples/build.sh "$HANGAR_GUESTS_DIR" machines >&2
build=${HANGAR_BENCH_BUILD:-build/release}
[ -e "$build/build.ninja" ] || cmake --preset release -B "$build" >/dev/null
ninja -C "$build" -j "$HANGAR_JOBS" --quiet bench_machine >&2
mkdir -p build/bench/bin
(cd bench/workflows/peer && go build -mod=readonly -trimpath -o ../../../build/bench/bin/machine_peer .)
exec python3 bench/workflows/bench.py --machine="$build/bin/bench_machine" --peer=build/bench/bin/machine_peer "$@"
