#!/bin/bash
# Builds a module: sdk/rust/build.sh OUT.wasm [DIR WHAT...]
#
# DIR is a cargo package, WHAT one of its targets, such as `--bin ring`; by default the example flight
# (sdk/rust/flight --example greeting).
#
# Uses the target wasm32-wasip1 of the installed toolchain where it has one (rustup target add
# wasm32-wasip1). Debian's rustc-web comes without, so its standard library is built from rust-web-src and
# linked with Debian's wasi-libc and lld-19, and -Zbuild-std needs RUSTC_BOOTSTRAP=1 there.
set -euo pipefail
out=$(realpath -m "${1:?usage: $0 OUT.wasm [DIR WHAT...]}")
sdk=$(cd "$(dirname "$0")" && pwd)
directory=$(realpath "${2:-$sdk/flight}")
what=("${@:3}")
[ ${#what[@]} -gt 0 ] || what=(--example greeting)

target=wasm32-wasip1
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$(dirname "$out")/.rust}
export CC_wasm32_wasip1=${CC_wasm32_wasip1:-clang-19} AR_wasm32_wasip1=${AR_wasm32_wasip1:-llvm-ar-19}

# Where cargo puts the program: its last message about artifacts says so.
build() {
  local messages
  messages=$(cd "$directory" && "$@" --locked --release --quiet --target $target "${what[@]}" --message-format=json-render-diagnostics)
  module=$(sed -n 's/.*"executable":"\([^"]*\.wasm\)".*/\1/p' <<<"$messages" | tail -1)
}

if [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
  build cargo build
else
  export RUSTC=${HANGAR_RUSTC:-/usr/bin/rustc} RUSTC_BOOTSTRAP=1
  sysroot=$("$RUSTC" --print sysroot)
  if [ ! -d "$sysroot/lib/rustlib/src/rust/library" ]; then
    echo "$0: no standard library for $target: install rust-web-src, or the target through rustup" >&2
    exit 1
  fi
  # ../start.c says why the entry point is not the C library's.
  mkdir -p "$CARGO_TARGET_DIR"
  start=$(realpath "$CARGO_TARGET_DIR")/start.o
  clang-19 --target=wasm32-wasi -Os -Wall -Wextra -Werror -c -o "$start" "$sdk/../start.c"
  export CARGO_TARGET_WASM32_WASIP1_LINKER=wasm-ld-19
  export CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS="-C linker-flavor=wasm-ld -C link-self-contained=no -L /usr/lib/wasm32-wasi -C link-arg=$start"
  build "${HANGAR_CARGO:-/usr/bin/cargo}" build -Zbuild-std=std,panic_abort
fi
cp "$module" "$out"
