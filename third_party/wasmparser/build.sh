#!/usr/bin/env bash
# Builds the reader and writer of WebAssembly modules from crates, and keeps it in the cache:
#
#   <cache>/wasmparser-<hash>/libhangar_wasmparser.a
#
#   build.sh              build it if it is missing, print the directory
#   build.sh --print-dir  only print the directory, whether or not it exists
#
# cmake/Wasmparser.cmake makes the target Wasmparser::wasmparser of it and of include/.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/../../dev/env.sh"

# Change the number when this script builds differently from the same sources.
recipe=1
pins=$(cd "$here" && cat Cargo.toml Cargo.lock src/*.rs; echo "recipe $recipe $HANGAR_ARCH")
out=$HANGAR_CACHE_DIR/wasmparser-$(sha256sum <<<"$pins" | cut -c1-16)

if [ "${1:-}" = --print-dir ] || [ -d "$out" ]; then
  echo "$out"
  exit
fi

mkdir -p "$HANGAR_CACHE_DIR"
exec 9>"$HANGAR_CACHE_DIR/wasmparser.lock"
flock 9
if [ -d "$out" ]; then
  echo "$out"
  exit
fi

command -v cargo >/dev/null || die "no cargo: run dev/setup.sh"
say "building wasmparser (once, takes half a minute)"
work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
for_processor
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$work/target}
# No path of this machine is in it: messages of panics have the names of source files.
RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo --remap-path-prefix=$here=wasmparser" \
  cargo build --release --locked "${rust_target[@]}" --jobs "$HANGAR_JOBS" --manifest-path "$here/Cargo.toml" 9>&- >&2

# One object, of which only our functions can be seen: wasmtime's library has Rust's standard library, too, and a program links
# both. Groups are dissolved first, because a linker takes those of one name for the same.
functions=(hangar_wasm_read_header hangar_wasm_customs hangar_wasm_rewrite hangar_wasm_link hangar_wasm_free)
"${binutils}ld" -r --gc-sections --force-group-allocation "${functions[@]/#/--undefined=}" -o "$work/all.o" \
  "$CARGO_TARGET_DIR/$rust_output/libhangar_wasmparser.a"
"${binutils}objcopy" "${functions[@]/#/--keep-global-symbol=}" "$work/all.o" "$work/hangar_wasmparser.o"
seen=$("${binutils}nm" --defined-only --extern-only "$work/hangar_wasmparser.o" | awk '{print $3}' | sort | xargs)
[ "$seen" = "$(printf '%s\n' "${functions[@]}" | sort | xargs)" ] || die "the library has other symbols: $seen"
"${binutils}ar" crsD "$work/libhangar_wasmparser.a" "$work/hangar_wasmparser.o"

rm -rf "$work/target" "$work/all.o" "$work/hangar_wasmparser.o"
chmod 755 "$work"
mv -T "$work" "$out"
trap - EXIT
say "wasmparser is in $out"
echo "$out"
