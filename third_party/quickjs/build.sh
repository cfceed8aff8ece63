#!/usr/bin/env bash
# Builds QuickJS-ng for WebAssembly from its crate, and keeps it in the cache:
#
#   <cache>/quickjs-<hash>/libquickjs.a   for wasm32-wasi
#   <cache>/quickjs-<hash>/source/        its headers, and its sources for who needs them natively
#
#   build.sh              build it if it is missing, print the directory
#   build.sh --print-dir  only print the directory, whether or not it exists
#
# cmake/QuickJs.cmake makes the state machine runtime of it (machine_runtime.c).
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/../../dev/env.sh"

# Change the number when this script builds differently from the same sources.
recipe=1
pins=$(cd "$here" && cat Cargo.toml Cargo.lock; echo "recipe $recipe"; clang-19 --version | head -1)
out=$HANGAR_CACHE_DIR/quickjs-$(sha256sum <<<"$pins" | cut -c1-16)

if [ "${1:-}" = --print-dir ] || [ -d "$out" ]; then
  echo "$out"
  exit
fi

mkdir -p "$HANGAR_CACHE_DIR"
exec 9>"$HANGAR_CACHE_DIR/quickjs.lock"
flock 9
if [ -d "$out" ]; then
  echo "$out"
  exit
fi

command -v cargo >/dev/null || die "no cargo: run dev/setup.sh"
say "building QuickJS for WebAssembly (once, takes half a minute)"
work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
# cargo checks what it fetches against Cargo.lock; it is asked where the sources are, not to build them.
quickjs=$(cargo metadata --locked --format-version 1 --manifest-path "$here/Cargo.toml" 9>&- | python3 -c '
import json, pathlib, sys
package = next(p for p in json.load(sys.stdin)["packages"] if p["name"] == "rquickjs-sys")
print(pathlib.Path(package["manifest_path"]).parent / "quickjs")')
mkdir "$work/source"
cp "$quickjs"/*.[ch] "$quickjs/LICENSE" "$work/source/"

# The library takes wasm32-wasi for Emscripten where threads, signals and rounding modes are concerned.
flags=(--target=wasm32-wasi -O2 -std=gnu2x -mbulk-memory -ffunction-sections -fdata-sections
  -D_GNU_SOURCE -DEMSCRIPTEN=1 -DFE_DOWNWARD=0 -DFE_UPWARD=0 -DNDEBUG)
objects=()
pids=()
for name in quickjs libregexp libunicode dtoa; do
  clang-19 "${flags[@]}" -w -c "$work/source/$name.c" -o "$work/$name.o" 9>&- &
  pids+=($!)
  objects+=("$work/$name.o")
done
for pid in "${pids[@]}"; do wait "$pid"; done
llvm-ar-19 crs "$work/libquickjs.a" "${objects[@]}"
rm "${objects[@]}"
chmod 755 "$work"
mv -T "$work" "$out"
trap - EXIT
say "QuickJS is in $out"
echo "$out"
