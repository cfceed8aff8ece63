# Sourced by bench/*/run.sh: goes to the repository's root, names the tools and the guests, and builds what several benchmarks need.
# A build that fails in $(peer ...) ends the script too.
shopt -s inherit_errexit
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
. dev/env.sh
export HANGAR_TOOLS_DIR HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests} PYTHONDONTWRITEBYTECODE=1
HANGAR_TOOLS_DIR=$(dev/build-tools.sh --print-dir)

# guests GROUP...: builds these groups of guests (examples/build.sh).
guests() { examples/build.sh "$HANGAR_GUESTS_DIR" "$@" >&2; }

# peer BENCH PROGRAM: builds the Go program in bench/BENCH/peer, and prints its path.
peer() {
  mkdir -p build/bench/bin
  (cd "bench/$1/peer" && go build -mod=readonly -trimpath -o "../../../build/bench/bin/$2" .)
  echo "build/bench/bin/$2"
}

# program TARGET: builds a C++ program of the benchmark, optimised, and prints its path. HANGAR_BENCH_BUILD: the build directory.
program() {
  local build=${HANGAR_BENCH_BUILD:-build/release}
  [ -e "$build/build.ninja" ] || cmake --preset release -B "$build" >/dev/null
  ninja -C "$build" -j "$HANGAR_JOBS" --quiet "$1" >&2
  echo "$build/bin/$1"
}
