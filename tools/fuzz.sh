#!/usr/bin/env bash
# Runs every fuzzer for some seconds, one after the other, and adds the time to build/fuzz/total.txt, which
# has one line "NAME SECONDS" for each fuzzer. The corpus that they find stays in build/fuzz/corpus.
#
#     tools/fuzz.sh SECONDS [NAME...]
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. dev/env.sh

seconds=${1:-}
[[ "$seconds" =~ ^[1-9][0-9]*$ ]] || die "usage: tools/fuzz.sh SECONDS [NAME...]"
shift
names=("$@")
if [ "${#names[@]}" = 0 ]; then
  for source in tests/fuzz/*_fuzz.cc; do names+=("$(basename "$source" _fuzz.cc)"); done
fi
cmake --preset fuzz > /dev/null
ninja -C build/fuzz --quiet "${names[@]/%/_fuzz}"

total=build/fuzz/total.txt
touch "$total"
status=0
for name in "${names[@]}"; do
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  seeds=()
  if [ -d "tests/fuzz/corpus/$name" ]; then seeds=("tests/fuzz/corpus/$name"); fi
  begin=$SECONDS
  # Without -seed: each run tries other inputs.
  "build/fuzz/bin/${name}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="$corpus-" "$corpus" "${seeds[@]}" > "$corpus.log" 2>&1 ||
    { status=1; echo "$name has found something: $corpus.log"; }
  spent=$((SECONDS - begin))
  awk -v name="$name" -v spent="$spent" '$1 == name { $2 += spent; seen = 1 } { print } END { if (!seen) print name, spent }' \
    "$total" > "$total.new"
  mv "$total.new" "$total"
done
awk '{ sum += $2 } END { printf "%d fuzzers, %.1f hours in all runs together\n", NR, sum / 3600 }' "$total"
exit "$status"
