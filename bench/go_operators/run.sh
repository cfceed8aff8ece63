#!/usr/bin/env bash
# Builds what the benchmark needs besides hangar itself, and runs it. Arguments go to bench.py.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../run_env.sh"

# native NAME MODULE PACKAGE: the program as a process.
native() {
  (cd "$2" && go build -mod=readonly -trimpath -ldflags='-s -w' -o "$OLDPWD/build/bench/bin/go_operators_$1" "$3")
}

# guest NAME DIRECTORY: the same source as a module.
guest() {
  local made=$HANGAR_GUESTS_DIR/.go_operators-$1.wasm said
  said=$("${HANGAR_BIN_DIR:-build/bin}/hangar" build go "$2" -o "$made" 2>&1) || { echo "$said" >&2; exit 1; }
  mv "$made" "$HANGAR_GUESTS_DIR/$1.wasm"
}

mkdir -p build/bench/bin
guests go_operators
native website examples/website .
native memo examples/memo ./cmd
native go_features tests/guests/go_features .
guest memo ./examples/memo/cmd
guest go_features ./tests/guests/go_features
exec python3 bench/go_operators/bench.py --programs=build/bench/bin "$@"
