#!/usr/bin/env bash
# Builds the shim of tests/node/wasmi-shim from its pinned crates, once, and prints its path.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/../../dev/env.sh"

sources=$here/wasmi-shim
out=$HANGAR_CACHE_DIR/shim-$(cat "$sources"/{Cargo.toml,Cargo.lock,src/main.rs} "$0" | sha256sum | cut -c1-16)
if [ ! -x "$out/containerd-shim-wasmi-v1" ]; then
  mkdir -p "$HANGAR_CACHE_DIR"
  exec 9>"$HANGAR_CACHE_DIR/shim.lock"
  flock 9
fi
if [ ! -x "$out/containerd-shim-wasmi-v1" ]; then
  say "building a containerd shim for tests"
  (cd "$sources" && cargo build --release --locked -j "$HANGAR_JOBS" --target-dir "$HANGAR_CACHE_DIR/shim-target") >&2 9>&-
  mkdir -p "$out"
  install -m 755 "$HANGAR_CACHE_DIR/shim-target/release/containerd-shim-wasmi-v1" "$out/.new"
  mv "$out/.new" "$out/containerd-shim-wasmi-v1"
  rm -rf "$HANGAR_CACHE_DIR/shim-target"
fi
echo "$out/containerd-shim-wasmi-v1"
