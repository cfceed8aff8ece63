#!/bin/bash
# Builds the example flight: sdk/cpp/build.sh OUT.wasm
#
# Needs clang-19, lld-19, wasi-libc, libc++-19-dev-wasm32, libclang-rt-19-dev-wasm32 and
# nlohmann-json3-dev. Exceptions do not link on wasm32-wasi, so there are none.
set -euo pipefail
out=$(realpath -m "${1:?usage: $0 OUT.wasm}")
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The JSON library is headers only, but the folder that holds them holds the host's libc as well.
ln -s /usr/include/nlohmann "$work/nlohmann"

# Without -flto: the linker has to see the reference to the constructors before it optimises.
clang-19 --target=wasm32-wasi -Os -Wall -Wextra -Werror -c -o "$work/start.o" start.c
clang++-19 --target=wasm32-wasi -std=c++20 -Os -flto -Wall -Wextra -Wpedantic -Wshadow -Werror \
  -ffile-prefix-map="$work=." -fno-exceptions -fno-rtti -nostdinc++ -isystem /usr/lib/llvm-19/include/wasm32-wasi/c++/v1 \
  -DJSON_NOEXCEPTION -DJSON_HAS_FILESYSTEM=0 -isystem "$work" -Iinclude \
  -nostartfiles -Wl,--strip-all -o "$out" "$work/start.o" examples/greeting.cc
