#!/usr/bin/env bash
# make static: hangar, hangar-guest and hangar-compile without shared libraries, in build/static. With ARCH=aarch64 for that processor, in
# build/static-aarch64, built on x86-64.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
export HANGAR_ARCH=${ARCH:-$(uname -m)}
. dev/env.sh

programs=(hangar hangar-guest hangar-compile)
[ "$(uname -m)" = x86_64 ] || die "tried on x86-64 only; this is $(uname -m)"
case $HANGAR_ARCH in
  x86_64) preset=release out=build/static ;;
  aarch64) preset=release-aarch64 out=build/static-aarch64 ;;
  *) die "ARCH is $HANGAR_ARCH; expected x86_64 or aarch64" ;;
esac
if [ "$HANGAR_ARCH" != "$(uname -m)" ]; then
  dev/setup.sh "--$HANGAR_ARCH"
  dev/sysroot.sh >/dev/null
fi
third_party/curl/build.sh >/dev/null
HANGAR_PRESET=$preset tools/build.sh "${programs[@]}"
say "linking them without shared libraries"
ninja -C "build/$preset" -j "$HANGAR_JOBS" --quiet static >&2
mkdir -p "$out"
for program in "${programs[@]}"; do
  ln -sf "../$preset/bin/static/$program" "$out/$program"
done
ls -lL "$out" >&2
