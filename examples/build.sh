#!/bin/bash
# Builds the flights of this tree: the examples, the guests of the tests, and those of the SDKs.
#
#   examples/build.sh OUT [GROUP...]     groups: examples tests cpp rust bench   (default: all but bench)
#
# Each module ends up in OUT/<name>.wasm; bench makes OUT/bench/heavy-00.wasm to heavy-19.wasm, equal in
# size and cost and different in digest. A module whose sources and compiler are those of the last
# build is not built again. Needs Go; the groups cpp and rust need clang-19 with its wasm32-wasi
# packages, and rustc-web, cargo-web and rust-web-src.
set -euo pipefail

if [ $# -lt 1 ]; then
  echo "usage: $0 OUT [examples|tests|cpp|rust|bench]..." >&2
  exit 2
fi
mkdir -p "$1/.stamps"
out=$(cd "$1" && pwd)
shift
groups=("$@")
[ ${#groups[@]} -gt 0 ] || groups=(examples tests cpp rust)
root=$(cd "$(dirname "$0")/.." && pwd)

# Two builds into one place would each see half of the other's.
exec 9> "$out/.stamps/lock"
flock 9

# fingerprint DIR...: one number for the sources in the directories, and for this script.
fingerprint() {
  (cd "$root" && find "$@" examples/build.sh -name target -prune -o -type f -not -name '*.md' -not -name '*.yaml' -print0 |
    LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-64)
}

# unless_current NAME FINGERPRINT COMMAND...: runs the command, which makes $out/NAME.wasm, unless that is
# there and was made from the same sources.
unless_current() {
  local name=$1 now=$2 stamp="$out/.stamps/${1//\//-}"
  shift 2
  if [ -s "$out/$name.wasm" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ]; then
    return 0
  fi
  rm -f "$stamp"
  mkdir -p "$(dirname "$out/$name")"
  echo "building $name.wasm"
  "$@"
  echo "$now" > "$stamp"
}

# go_flight NAME MODULE PACKAGE [LDFLAG...]: without what would make two checkouts' modules differ.
go_flight() {
  local name=$1 module=$2 package=$3
  shift 3
  (cd "$root/$module" && GOOS=wasip1 GOARCH=wasm GOFLAGS='' \
    go build -mod=readonly -buildvcs=false -trimpath -ldflags "-s -w $*" -o "$out/$name.wasm" "$package")
}

go_version() { go version | sed 's/^go version //'; }

build_examples() {
  local now name
  now="$(go_version) $(fingerprint examples sdk/go)"
  for name in pipeline app; do
    unless_current "$name" "$now" go_flight "$name" examples "./$name/flight"
  done
}

build_tests() {
  local now name
  now="$(go_version) $(fingerprint tests/guests/flights sdk/go)"
  for name in basic backend backend_dev behave heavy; do
    unless_current "$name" "$now" go_flight "$name" tests/guests/flights "./$name"
  done
  unless_current greeting_go "$now" go_flight greeting_go sdk/go ./examples/greeting
}

build_bench() {
  local now number
  now="$(go_version) $(fingerprint tests/guests/flights sdk/go)"
  for number in $(seq -w 0 19); do
    unless_current "bench/heavy-$number" "$now" \
      go_flight "bench/heavy-$number" tests/guests/flights ./heavy -X "main.variant=$number"
  done
}

build_cpp() {
  local now
  now="$(clang++-19 --version | head -1) $(fingerprint sdk/cpp)"
  unless_current greeting_cpp "$now" "$root/sdk/cpp/build.sh" "$out/greeting_cpp.wasm"
}

build_rust() {
  local now
  now="$(rustc --version) $(fingerprint sdk/rust)"
  unless_current greeting_rust "$now" "$root/sdk/rust/build.sh" "$out/greeting_rust.wasm"
}

for group in "${groups[@]}"; do
  case $group in
    examples | tests | cpp | rust | bench) "build_$group" ;;
    *)
      echo "$0: no group $group" >&2
      exit 2
      ;;
  esac
done
