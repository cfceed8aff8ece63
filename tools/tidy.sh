#!/usr/bin/env bash
# clang-tidy over src/ with the checks of .clang-tidy (tools/clang_tidy.py), and tools/tidy.py (layers, doors, headers).
#
#   tidy.sh [--again] [--within SECONDS] [--jobs N] [--sources] [--includes|--fix-includes] [FILE...]
#
# What clang-tidy found nothing in before is not checked again, unless --again says so: the results are in the
# cache. All files take half an hour on two cores. --includes checks misc-include-cleaner and nothing else,
# --fix-includes writes what it asks for.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. dev/env.sh

status=0
python3 tools/tidy.py || status=1
log=$(cmake --preset dev 2>&1) || die "cmake: $log"
say "clang-tidy"
python3 tools/clang_tidy.py "$@" || status=1
exit $status
