#!/usr/bin/env bash
# Fetches one of the packages pinned in npm-packages.txt, once, and prints the node_modules directory that
# holds it: the value of NODE_PATH with which esbuild and node find the package.
#
#   npm-package.sh NAME@VERSION
#
# npm fetches from its configured registry; the integrity hash proves that it is the right package.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/env.sh"

wanted=${1:?usage: $0 NAME@VERSION}
name=${wanted%@*} version=${wanted##*@}
integrity=$(awk -v name="$name" -v version="$version" '$1 == name && $2 == version {print $3}' "$here/npm-packages.txt")
[ -n "$integrity" ] || die "$wanted is not in dev/npm-packages.txt"

out=$HANGAR_CACHE_DIR/npm/$name-$version-$(sha256sum <<<"$integrity" | cut -c1-8)
if [ ! -d "$out" ]; then
  mkdir -p "$HANGAR_CACHE_DIR/npm"
  work=$(mktemp -d "$HANGAR_CACHE_DIR/npm/new.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  say "fetching $wanted from npm's registry"
  command -v npm >/dev/null || die "no npm: run dev/setup.sh"
  tarball=$work/$(cd "$work" && npm pack --silent "$wanted" </dev/null)
  found=sha512-$(openssl dgst -sha512 -binary "$tarball" | base64 --wrap=0)
  [ "$found" = "$integrity" ] || die "$wanted: the tarball's integrity is $found, pinned is $integrity"
  mkdir -p "$work/out/node_modules/$name"
  tar --extract --gzip --file="$tarball" --strip-components=1 --no-same-owner --directory="$work/out/node_modules/$name"
  # A faster process has created the same directory.
  mv -T "$work/out" "$out" 2>/dev/null || [ -d "$out" ]
fi
echo "$out/node_modules"
