#!/usr/bin/env bash
# Builds wasmtime's C API twice, with and without a compiler, and keeps the result in the cache:
#
#   <cache>/wasmtime-<hash>/lib/libhangar_wasmtime_{runtime,compiler}.a
#   <cache>/wasmtime-<hash>/include-{runtime,compiler}/
#
# Each library has headers of its own: wasmtime/conf.h lists the features that the library was built
# with, and types change size with them (wasmtime_val_t). Mixing them links, then corrupts memory.
#
#   build.sh              build what is missing, print the directory
#   build.sh --print-dir  only print the directory, whether or not it exists
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/../../dev/env.sh"

# Change the number when this script builds differently from the same sources.
recipe=1
pins=$(cd "$here" && cat Cargo.toml Cargo.lock {runtime,compiler}/{Cargo.toml,src/lib.rs}; echo "recipe $recipe $HANGAR_ARCH")
out=$HANGAR_CACHE_DIR/wasmtime-$(sha256sum <<<"$pins" | cut -c1-16)

if [ "${1:-}" = --print-dir ]; then
  echo "$out"
  exit
fi
if [ -d "$out" ]; then
  echo "$out"
  exit
fi

mkdir -p "$HANGAR_CACHE_DIR"
exec 9>"$HANGAR_CACHE_DIR/wasmtime.lock"
flock -n 9 || { say "another build of wasmtime is running, waiting for it"; flock 9; }
if [ -d "$out" ]; then
  echo "$out"
  exit
fi

command -v cargo >/dev/null || die "no cargo: run dev/setup.sh"
work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/lib"
for_processor
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$work/target}

cd "$here"
for flavour in runtime compiler; do
  say "building wasmtime, $flavour (once, takes minutes)"
  # One cargo run each: in one run cargo would unite the features of the two crates.
  cargo build --release --locked "${rust_target[@]}" --jobs "$HANGAR_JOBS" -p "hangar-wasmtime-$flavour" \
    --message-format=json-render-diagnostics >"$work/messages.json" 9>&-
  python3 - "$work/messages.json" >"$work/out_dir" <<'PY'
# Where the C API's build script put the headers that fit this library.
import json, sys
for line in open(sys.argv[1]):
    message = json.loads(line)
    if message.get("reason") == "build-script-executed" and "wasmtime-c-api-impl" in message["package_id"]:
        print(message["out_dir"])
PY
  [ "$(wc -l <"$work/out_dir")" = 1 ] || die "cannot tell which headers belong to the $flavour library"
  cp -r "$(cat "$work/out_dir")/include" "$work/include-$flavour"
  cp "$CARGO_TARGET_DIR/$rust_output/libhangar_wasmtime_$flavour.a" "$work/lib/"
done
has_compiler() { grep -qw '^#define WASMTIME_FEATURE_CRANELIFT' "$work/include-$1/wasmtime/conf.h"; }
has_compiler compiler || die "the compiler library has no compiler"
if has_compiler runtime; then die "the runtime library contains a compiler"; fi

rm -rf "$work/target" "$work/messages.json" "$work/out_dir"
chmod 755 "$work"
mv -T "$work" "$out"
trap - EXIT
say "wasmtime is in $out"
echo "$out"
