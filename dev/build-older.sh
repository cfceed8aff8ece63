#!/usr/bin/env bash
# Builds the programs of an older version of hangar, once:
#
#   <cache>/older/<commit>/bin
#
#   build-older.sh [REVISION]       build them if they are missing, print the directory
#
# Without a revision: the last release tag (v*) before this commit; while there is none, the commit 30 before this one.
# A version takes about 30 minutes on two cores, and more if it needs another wasmtime.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. dev/env.sh

revision=${1:-}
if [ -z "$revision" ]; then
  revision=$(git describe --tags --abbrev=0 --match 'v*' HEAD~1 2>/dev/null) || revision=HEAD~30
fi
commit=$(git rev-parse --verify --quiet "$revision^{commit}") || die "there is no revision $revision here: name another one, or fetch the history"
out=$HANGAR_CACHE_DIR/older/$commit

mkdir -p "$out"
exec 9>"$out/lock"
flock -n 9 || { say "another build of $revision is running, waiting for it"; flock 9; }
if [ ! -f "$out/built" ]; then
  say "building hangar $(git log -1 --format='%h of %cs' "$commit")"
  rm -rf "$out/source" "$out/bin"
  mkdir -p "$out/source" "$out/bin"
  git archive "$commit" | tar -x -C "$out/source"
  # Its own scripts, with its own dependencies: those that did not change are in the cache.
  "$out/source/tools/build.sh" >&2 9>&-
  # The links lead into the source's build directory.
  cp --dereference "$out/source/build/bin/"* "$out/bin/"
  rm -rf "$out/source"
  touch "$out/built"
fi
echo "$out/bin"
