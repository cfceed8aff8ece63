#!/usr/bin/env bash
# Builds the Lua interpreter for WebAssembly, a Go program, and keeps it in the cache:
#
#   <cache>/lua-<hash>/lua.wasm     a module with the entry point of a state machine
#   <cache>/lua-<hash>/lua.wasm.z   the same as a zlib stream, as hangar contains it
#
#   build.sh              build it if it is missing, print the directory
#   build.sh --print-dir  only print the directory, whether or not it exists
#
# cmake/Lua.cmake makes it a part of hangar.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/../../dev/env.sh"

# Change the number when this script builds differently from the same sources.
recipe=2
command -v go >/dev/null || die "no go: run dev/setup.sh"
# `go version` of another directory: one with a go.mod may want another toolchain.
pins=$(cd "$here" && cat main.go entry_wasip1.go go.mod go.sum; echo "recipe $recipe"; cd / && go version)
out=$HANGAR_CACHE_DIR/lua-$(sha256sum <<<"$pins" | cut -c1-16)

if [ "${1:-}" = --print-dir ] || [ -d "$out" ]; then
  echo "$out"
  exit
fi

mkdir -p "$HANGAR_CACHE_DIR"
exec 9>"$HANGAR_CACHE_DIR/lua.lock"
flock 9
if [ -d "$out" ]; then
  echo "$out"
  exit
fi

say "building the Lua interpreter for WebAssembly (once, takes half a minute)"
work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
# No path of this machine is in it: the same sources give the same bytes, so native code of it can be shared.
(cd "$here" && GOOS=wasip1 GOARCH=wasm GOFLAGS='' go build -p "$HANGAR_JOBS" -buildmode=c-shared -mod=readonly -trimpath -buildvcs=false -ldflags '-s -w' \
  -o "$work/lua.wasm" .) 9>&-
python3 - "$work/lua.wasm" <<'PYTHON'
import pathlib, sys, zlib
module = pathlib.Path(sys.argv[1])
module.with_name("lua.wasm.z").write_bytes(zlib.compress(module.read_bytes(), 9))
PYTHON
chmod 755 "$work"
mv -T "$work" "$out"
trap - EXIT
say "the Lua interpreter is in $out"
echo "$out"
