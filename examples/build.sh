#!/bin/bash
# Builds the modules of this tree: the examples, the guests of the tests, and those of the SDKs.
#
#   examples/build.sh OUT [GROUP|MODULE...]
#
# A MODULE is the name of one, such as ring. Groups: examples tests cpp rust operators go_operators machines bench; all but bench unless told. Each module ends up
# in OUT/<name>.wasm. The group operators has the long-running ones, machines the state machines (as
# JavaScript bundles OUT/<name>.js too); bench makes OUT/bench/heavy-00.wasm to heavy-19.wasm, equal in size
# and cost and different in digest, and a converter with Go's newer JSON. A module whose sources and compiler are those of the last build is not
# built again. Needs Go; the groups cpp, rust, operators and machines need clang-19 with its wasm32-wasi
# packages, rustc-web, cargo-web and rust-web-src, and what dev/setup.sh puts into the cache.
set -euo pipefail

if [ $# -lt 1 ]; then
  echo "usage: $0 OUT [examples|tests|cpp|rust|operators|go_operators|machines|bench|MODULE]..." >&2
  exit 2
fi
mkdir -p "$1/.stamps"
out=$(cd "$1" && pwd)
shift
usual=(examples tests cpp rust operators go_operators machines)
groups=() only=()
for argument in "$@"; do
  case " ${usual[*]} bench " in
    *" $argument "*) groups+=("$argument") ;;
    *) only+=("$argument") ;;
  esac
done
[ ${#groups[@]} -gt 0 ] || groups=("${usual[@]}")
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/dev/env.sh"

# Two builds into one directory would each see half of the other's.
exec 9> "$out/.stamps/lock"
flock 9

# fingerprint DIR...: one number for the sources in the directories, and for this script.
fingerprint() {
  (cd "$root" && find "$@" examples/build.sh -name target -prune -o -type f -not -name '*.md' -not -name '*.yaml' -print0 |
    LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-64)
}

# unless_current NAME FINGERPRINT COMMAND...: runs the command, which makes $out/NAME.wasm (or $out/NAME if that has a
# suffix of its own), unless that exists and was made from the same sources.
unless_current() {
  local name=$1 now=$2 stamp="$out/.stamps/${1//\//-}" file=$1
  shift 2
  if [ ${#only[@]} -gt 0 ] && [[ " ${only[*]} " != *" $name "* ]]; then return; fi
  [[ $file == *.* ]] || file=$file.wasm
  if [ -s "$out/$file" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ]; then
    return 0
  fi
  rm -f "$stamp"
  mkdir -p "$(dirname "$out/$file")"
  echo "building $file"
  "$@"
  echo "$now" > "$stamp"
}

# go_flight NAME MODULE PACKAGE [LDFLAG...]: without paths and stamps, so that all checkouts make the same module.
go_flight() {
  local name=$1 module=$2 package=$3
  shift 3
  (cd "$root/$module" && GOOS=wasip1 GOARCH=wasm GOFLAGS='' \
    go build -mod=readonly -buildvcs=false -trimpath -ldflags "-s -w $*" -o "$out/$name.wasm" "$package")
}

go_version() { go version | sed 's/^go version //'; }

build_examples() {
  local now name
  now="$(go_version) $(fingerprint examples/app examples/pipeline examples/internal examples/go.mod sdk/go)"
  for name in pipeline app; do
    unless_current "$name" "$now" go_flight "$name" examples "./$name/flight"
  done
}

build_tests() {
  local now name
  now="$(go_version) $(fingerprint tests/guests/flights sdk/go)"
  for name in basic backend backend_dev behave converter heavy; do
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
  GOEXPERIMENT=jsonv2 unless_current bench/converter_jsonv2 "$now" \
    go_flight bench/converter_jsonv2 tests/guests/flights ./converter
}

build_cpp() {
  local now
  now="$(clang++-19 --version | head -1) $(fingerprint sdk/cpp sdk/start.c)"
  unless_current greeting_cpp "$now" "$root/sdk/cpp/build.sh" "$out/greeting_cpp.wasm"
}

build_rust() {
  local now
  now="$(rustc --version) $(fingerprint sdk/rust sdk/start.c)"
  unless_current greeting_rust "$now" "$root/sdk/rust/build.sh" "$out/greeting_rust.wasm"
}

build_operators() {
  local now
  now="$(rustc --version) $(fingerprint sdk/rust sdk/start.c examples/ring)"
  unless_current ring "$now" "$root/sdk/rust/build.sh" "$out/ring.wasm" "$root/examples/ring" --bin ring
  now="$(rustc --version) $(fingerprint sdk/rust sdk/start.c tests/guests/operators)"
  unless_current operator_behave "$now" \
    "$root/sdk/rust/build.sh" "$out/operator_behave.wasm" "$root/tests/guests/operators" --bin operator_behave
  now="$(clang++-19 --version | head -1) $(fingerprint sdk/cpp sdk/start.c)"
  unless_current label_mirror "$now" \
    "$root/sdk/cpp/build.sh" "$out/label_mirror.wasm" "$root/sdk/cpp/examples/label_mirror.cc"
}

# Large: it contains client-go and controller-runtime. docs/operating/go-operators.md explains the flags.
build_go_operators() {
  local now
  now="$(go_version) $(fingerprint examples/website sdk/go/hangar)"
  unless_current website "$now" go_operator "$out/website.wasm" examples/website
}

# go_operator OUT MODULE
go_operator() {
  (cd "$root/$2" && GOOS=wasip1 GOARCH=wasm GOFLAGS='' \
    go build -mod=readonly -buildvcs=false -trimpath -buildmode=c-shared -ldflags '-s -w -checklinkname=0' -o "$1" .)
}

# bundle OUT XSTATE SOURCE: as the published command bundles a machine.
bundle() {
  NODE_PATH=$("$root/dev/npm-package.sh" "xstate@$2") \
    esbuild "$3" --bundle --format=esm --log-level=warning --outfile="$1"
}

# bytecode OUT SOURCE QUICKJS: a machine's bundle as QuickJS bytecode, made by the same engine, built for this machine.
bytecode() {
  local work
  work=$(mktemp -d)
  bundle "$work/bundle.js" 4.38.3 "$2"
  clang-19 -std=gnu23 -O0 -w -D_GNU_SOURCE -DNDEBUG -I"$3/source" -o "$work/compile" "$root/tests/guests/machines/javascript/compile.c" \
    "$3"/source/{quickjs,libregexp,libunicode,dtoa}.c -lm -lpthread
  "$work/compile" "$work/bundle.js" "$1"
  rm -rf "$work"
}

# javascript_module NAME SOURCE [FLAG...]: a bundle and an engine in one module, as Javy makes it (module.c has
# the FLAGs). Without a SOURCE: the engine alone.
javascript_module() {
  local name=$1 source=$2 here=$root/tests/guests/machines/javascript quickjs work
  shift 2
  quickjs=$("$root/third_party/quickjs/build.sh")
  work=$(mktemp -d)
  [ -z "$source" ] || bytecode "$work/bundle.bin" "$source" "$quickjs"
  clang-19 --target=wasm32-wasi -std=gnu23 -O2 -Wall -Wextra -Werror -isystem "$quickjs/source" "$@" \
    -DBUNDLE='"bundle.bin"' --embed-dir="$work" -o "$out/$name.wasm" "$here/module.c" "$quickjs/libquickjs.a" \
    -Wl,--gc-sections,--strip-all,--stack-first,-z,stack-size=1048576 -lwasi-emulated-signal
  rm -rf "$work"
}

# dynamic_module NAME SOURCE NAMESPACE [FUNCTION]...: a bundle alone, for an engine in another module (dynamic.py).
dynamic_module() {
  local name=$1 source=$2 here=$root/tests/guests/machines/javascript work
  shift 2
  work=$(mktemp -d)
  bytecode "$work/bundle.bin" "$source" "$("$root/third_party/quickjs/build.sh")"
  python3 "$here/dynamic.py" "$work/bundle.bin" "$@" > "$work/module.wat"
  wat2wasm -o "$out/$name.wasm" "$work/module.wat"
  rm -rf "$work"
}

# cpp_machine OUT SOURCE: two exports and no start, which the SDK's script for programs does not support.
cpp_machine() {
  local headers
  headers=$(mktemp -d)
  ln -s /usr/include/nlohmann "$headers/nlohmann"
  clang++-19 --target=wasm32-wasi -mexec-model=reactor -std=c++20 -Os -flto -Wall -Wextra -Wpedantic -Wshadow -Werror \
    -ffile-prefix-map="$headers=." -fno-exceptions -fno-rtti -nostdinc++ -isystem /usr/lib/llvm-19/include/wasm32-wasi/c++/v1 \
    -DJSON_NOEXCEPTION -DJSON_HAS_FILESYSTEM=0 -isystem "$headers" -Wl,--export=malloc -Wl,--strip-all \
    -Wl,--stack-first,-z,stack-size=262144 -o "$1" "$2"
  rm -rf "$headers"
}

build_machines() {
  local now name source version javascript=tests/guests/machines/javascript
  now="$(esbuild --version) $(fingerprint examples/database-provisioner/src dev/npm-packages.txt)"
  unless_current database_provisioner.js "$now" \
    bundle "$out/database_provisioner.js" 4.38.3 "$root/examples/database-provisioner/src/index.ts"
  # Machines for one major version of XState have it in their names.
  for source in $(cd "$root" && echo tests/guests/machines/*.ts bench/workflows/*.ts); do
    name=$(basename "$source" .ts) version=5.33.3
    [[ $name != *_v4 ]] || version=4.38.3
    now="$(esbuild --version) $(fingerprint "$source" dev/npm-packages.txt)"
    unless_current "$name.js" "$now" bundle "$out/$name.js" "$version" "$root/$source"
  done
  now="$(esbuild --version) $(clang-19 --version | head -1) $("$root/third_party/quickjs/build.sh" --print-dir)"
  now+=" $(fingerprint examples/database-provisioner/src $javascript dev/npm-packages.txt)"
  unless_current provisioner_handle_event "$now" \
    javascript_module provisioner_handle_event "$root/$javascript/handle_event.ts" -mexec-model=reactor -Wl,--export=malloc
  unless_current provisioner_command "$now" \
    javascript_module provisioner_command "$root/$javascript/command.ts" -DJAVY_COMMAND
  unless_current javy_plugin "$now" javascript_module javy_plugin "" -DJAVY_PLUGIN -mexec-model=reactor
  unless_current provisioner_dynamic "$now" \
    dynamic_module provisioner_dynamic "$root/$javascript/command.ts" hangar-test-plugin-v1
  now="$(clang++-19 --version | head -1) $(fingerprint examples/approval)"
  unless_current approval "$now" cpp_machine "$out/approval.wasm" "$root/examples/approval/approval.cc"
}

for group in "${groups[@]}"; do "build_$group"; done
for name in ${only[@]+"${only[@]}"}; do
  [ -s "$out/$name.wasm" ] || [ -s "$out/$name" ] || { echo "$0: no group and no module $name" >&2; exit 2; }
done
