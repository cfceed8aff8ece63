#!/usr/bin/env bash
# make static: hangar, hangar-guest and hangar-compile without shared libraries, in build/static. x86-64 only.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. dev/env.sh

[ "$(uname -m)" = x86_64 ] || die "tried on x86-64 only; this is $(uname -m)"
third_party/curl/build.sh >/dev/null
tools/build.sh hangar hangar-guest hangar-compile
say "linking them without shared libraries"
ninja -C build/release -j "$HANGAR_JOBS" --quiet static >&2
mkdir -p build/static
for program in hangar hangar-guest hangar-compile; do
  ln -sf "../release/bin/static/$program" "build/static/$program"
done
ls -lL build/static >&2
