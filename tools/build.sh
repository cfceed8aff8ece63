#!/usr/bin/env bash
# Builds the programs as users get them and links them to build/bin. build.sh [PROGRAM...]: only these.
# HANGAR_PRESET: another preset than release; its programs are not linked to build/bin. HANGAR_BUILD_STATUS: if it is not empty, tells how much is built also where there is no terminal.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. dev/env.sh

dev/setup.sh
. dev/env.sh
third_party/wasmtime/build.sh >/dev/null
third_party/wasmparser/build.sh >/dev/null
third_party/quickjs/build.sh >/dev/null
third_party/lua/build.sh >/dev/null

programs=("$@")
if [ ${#programs[@]} = 0 ]; then programs=("${HANGAR_PROGRAMS[@]}"); fi
preset=${HANGAR_PRESET:-release}
say "building ${programs[*]} ($preset)"
log=$(cmake --preset "$preset" 2>&1) || die "cmake: $log"
quiet=(--quiet)
if [ -t 1 ] || [ -n "${HANGAR_BUILD_STATUS:-}" ]; then quiet=(); fi
ninja -C "build/$preset" -j "$HANGAR_JOBS" "${quiet[@]}" "${programs[@]}" >&2
if [ "$preset" != release ]; then exit; fi
mkdir -p build/bin
for program in "${programs[@]}"; do
  ln -sf "../release/bin/$program" "build/bin/$program"
done
