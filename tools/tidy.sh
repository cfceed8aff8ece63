#!/usr/bin/env bash
# clang-tidy over src/ with the checks of .clang-tidy, and tools/tidy.py (layers, doors, headers).
# tidy.sh [FILE...]: only these files.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. dev/env.sh

python3 tools/tidy.py
log=$(cmake --preset dev 2>&1) || die "cmake: $log"
mapfile -t files < <(if [ $# -gt 0 ]; then printf '%s\n' "$@"; else git ls-files -- 'src/*.cc'; fi)
say "clang-tidy over ${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$HANGAR_JOBS" clang-tidy-19 --quiet --warnings-as-errors='*' -p build/dev
