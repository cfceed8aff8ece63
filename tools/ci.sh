#!/usr/bin/env bash
# Every test of this project (`make test`): no network but the package registries, no terminal, nothing
# left running. With SANITIZERS=1, as CI has it, the tests of C++ run under ASan, UBSan and TSan instead.
# A step that fails does not keep the others from running unless they need what it makes.
#
# Progress goes to stderr. Stdout gets one line, the sum of all test runners:
#   N passed, N failed, N skipped
# Exit status: 0 if nothing failed and something ran; with CI=true a skipped test is a failure too.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. dev/env.sh
exec 3>&1 1>&2 </dev/null

export HANGAR_TOOLS_DIR HANGAR_GUESTS_DIR=$PWD/build/guests HANGAR_BIN_DIR=$PWD/build/test/bin
HANGAR_TOOLS_DIR=$(dev/build-tools.sh --print-dir)
# Reports of the sanitizers with names and line numbers.
export ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19 TSAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19
export UBSAN_OPTIONS=print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}

reports=$PWD/build/reports
rm -rf "$reports"
mkdir -p "$reports"

# step NAME COMMAND...: runs COMMAND, whose test reports go to $report. Its status is kept for tally.py and
# returned.
step() {
  local name=$1 began=$SECONDS status=0
  shift
  report=$reports/$name
  mkdir -p "$report"
  say "$name"
  "$@" || status=$?
  echo "$status" >"$report/status"
  say "$name: $([ $status = 0 ] && echo ok || echo FAILED) after $((SECONDS - began)) s"
  return $status
}

# The line that ends every run, whatever happened before.
finish() {
  local status=$?
  if [ -n "${sanitized:-}" ]; then kill -- "-$sanitized" || true; fi
  python3 tools/tally.py "$reports" >&3 || status=1
  exit $status
}
trap finish EXIT

install_dependencies() {
  dev/build-tools.sh >/dev/null && dev/build-collector.sh >/dev/null && third_party/wasmtime/build.sh >/dev/null &&
    third_party/wasmparser/build.sh >/dev/null && third_party/quickjs/build.sh >/dev/null && third_party/lua/build.sh >/dev/null
}

check_format() {
  git ls-files -z -- '*.h' '*.cc' | xargs -0r clang-format-19 --dry-run -Werror || return 1
  local unformatted
  unformatted=$(git ls-files -z -- '*.go' | xargs -0r gofmt -l) || return 1
  [ -z "$unformatted" ] || { echo "gofmt -w would change: $unformatted"; return 1; }
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  cmake --preset "$preset" >"$report/configure.log" 2>&1 || { cat "$report/configure.log"; return 1; }
  ninja -C "build/$preset" -j "$HANGAR_JOBS" --quiet "$@"
}

# run_ctest PRESET LABEL: every test with that label. GoogleTest programs also write a report each.
run_ctest() {
  (cd "build/$1" && ctest --show-only=json-v1 -L "$2" >"$report/ctest.json" &&
    GTEST_OUTPUT=xml:$report/gtest/ ctest -L "$2" -j "$HANGAR_JOBS" --output-on-failure --no-tests=ignore \
      --output-junit "$report/ctest.xml")
}

check_go() {
  local module status=0
  # Those left out have no code of ours: they pin the control plane's programs.
  for module in $(git ls-files -- '*go.mod' | xargs -n 1 dirname | grep -vE '^dev/tools/(ctl|esbuild|helm|kwok|node|kubernetes-.*)$'); do
    (cd "$module" && go vet ./... && go test -json ./... >"$report/${module//\//-}.go.json") || status=1
  done
  return $status
}

check_rust() { (cd sdk/rust && cargo test --locked -j "$HANGAR_JOBS" --target-dir ../../build/rust) | tee "$report/sdk.cargo.txt"; }

# Debian's Python, because that is the one with Debian's pytest.
run_pytest() { /usr/bin/python3 -m pytest -q -p no:cacheprovider "$@" --junitxml="$report/pytest.xml"; }

# Before anything takes long; on a bare Debian as soon as there is a Python.
check_machine() { step machine python3 tools/machine.py || true; }
if command -v python3 >/dev/null; then check_machine; fi
step setup dev/setup.sh --tests
if [ ! -e "$reports/machine" ]; then check_machine; fi
. dev/env.sh # setup may have added a toolchain
step dependencies install_dependencies
step format check_format || true
step texts python3 tools/text_rules.py || true
step engine python3 tools/wasmtime_patch.py || true
step tools run_pytest tools bench tests/soak || true
step go check_go || true
step rust check_rust || true
step guests examples/build.sh "$HANGAR_GUESTS_DIR" || true

# Where the sanitizers run the tests of C++, these need not be compiled a third time, but for the few that no sanitized
# build has. No targets: all.
targets=()
if [ "${SANITIZERS:-0}" = 1 ]; then targets=("${HANGAR_PROGRAMS[@]}" walls); fi

# At the lowest priority: it has the processors only while everything else waits.
idle() { (chrt --idle --pid 0 "$BASHPID" || true; "$@"); }

# The fuzzers' build has ASan and UBSan in it; one build for both saves ten minutes. The end-to-end tests leave a third
# of the processors' time to these builds and to their unit tests.
build_and_test_sanitized() {
  local preset
  for preset in fuzz tsan; do
    if step "build-${sanitizer_of[$preset]}" idle build "$preset"; then
      step "${sanitizer_of[$preset]}-unit" nice_ctest "$preset" unit || true
    fi
  done
}
declare -A sanitizer_of=([fuzz]=asan [tsan]=tsan)
nice_ctest() { (renice -n 5 -p "$BASHPID" >/dev/null; run_ctest "$@"); }
sanitized= # its process group, while it runs
has_passed() { [ "$(cat "$reports/$1/status" 2>/dev/null)" = 0 ]; }

if step build build test "${targets[@]}"; then
  if [ "${SANITIZERS:-0}" = 1 ]; then
    set -m # a process group of its own
    build_and_test_sanitized &
    sanitized=$!
    set +m
    step walls run_ctest test walls || true
  else
    step unit run_ctest test unit || true
    step conformance run_ctest test conformance || true
  fi
  # They wait more than they compute.
  step e2e run_pytest tests/e2e -n "$((HANGAR_JOBS + 2))" --dist loadgroup || true
  if [ -n "$sanitized" ]; then
    say "the rest of the sanitizers' builds and unit tests"
    wait "$sanitized" || true
    sanitized=
  fi
  # The victims' answers are timed, so nothing else runs.
  step tenants run_pytest tests/tenants -n "$((HANGAR_JOBS + 1))" || true
fi
if [ "${SANITIZERS:-0}" != 1 ]; then exit 0; fi
if has_passed build-asan; then
  step asan-conformance run_ctest fuzz conformance || true
  step fuzz run_ctest fuzz fuzz || true
fi
if has_passed build-tsan; then step tsan-conformance run_ctest tsan conformance || true; fi
