#!/bin/bash
# Builds one of the examples: sdk/cpp/build.sh OUT.wasm [SOURCE.cc]
#
# SOURCE is examples/greeting.cc, a flight, by default. Needs clang-19, lld-19, wasi-libc,
# libc++-19-dev-wasm32, libclang-rt-19-dev-wasm32 and nlohmann-json3-dev. Exceptions do not link on
# wasm32-wasi, so they are off.
set -euo pipefail
out=$(realpath -m "${1:?usage: $0 OUT.wasm [SOURCE.cc]}")
sdk=$(cd "$(dirname "$0")" && pwd)
source=$(realpath "${2:-$sdk/examples/greeting.cc}")
cd "$sdk"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The JSON library is headers only, but its folder contains the host's libc headers as well.
ln -s /usr/include/nlohmann "$work/nlohmann"

# The stack first: there is no memory beyond its end, so that an overflow traps and
# overwrites nothing.
stack=(-Wl,--stack-first -Wl,-z,stack-size=262144)

# Without -flto: the linker has to see the reference to the constructors before it optimises.
clang-19 --target=wasm32-wasi -Os -Wall -Wextra -Werror -c -o "$work/start.o" ../start.c
clang++-19 --target=wasm32-wasi -std=c++20 -Os -flto -Wall -Wextra -Wpedantic -Wshadow -Werror \
  -ffile-prefix-map="$work=." -fno-exceptions -fno-rtti -nostdinc++ -isystem /usr/lib/llvm-19/include/wasm32-wasi/c++/v1 \
  -DJSON_NOEXCEPTION -DJSON_HAS_FILESYSTEM=0 -isystem "$work" -Iinclude \
  -nostartfiles "${stack[@]}" -Wl,--strip-all -o "$out" "$work/start.o" "$source"
