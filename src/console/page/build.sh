#!/usr/bin/env bash
# Bundles the page of `hangar console` and compresses its files: build.sh DIRECTORY
#
#   DIRECTORY/{html,js,css,icon}.gz
#
# esbuild and the packages of dev/npm-packages.txt come from dev/setup.sh. No other program of npm runs.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/../../../dev/env.sh"

# What a browser has to load, compressed.
bytes_max=$((300 * 1024))

out=${1:?usage: $0 DIRECTORY}
command -v esbuild >/dev/null || die "no esbuild: run dev/setup.sh"
NODE_PATH=$("$here/packages.sh")
export NODE_PATH
mkdir -p "$out"
esbuild "$here/console.tsx" --bundle --minify --format=iife --target=es2022 --jsx=automatic --jsx-import-source=preact \
  --charset=utf8 --legal-comments=none \
  --banner:js='/* Contains preact, (c) Jason Miller, and uPlot, (c) Leon Sorokin; both under the MIT License. */' --log-level=warning --outfile="$out/console.js"
cp "$here/index.html" "$out/console.html"
cp "$here/icon.svg" "$out/console.svg"
bytes=0
for pair in html:html js:js css:css svg:icon; do
  # Without name and time: equal files for equal sources.
  gzip --best --no-name --stdout "$out/console.${pair%:*}" >"$out/${pair#*:}.gz.new"
  mv "$out/${pair#*:}.gz.new" "$out/${pair#*:}.gz"
  bytes=$((bytes + $(stat --format=%s "$out/${pair#*:}.gz")))
done
if [ "$bytes" -gt "$bytes_max" ]; then
  rm -f "$out"/*.gz
  die "the console's page takes $bytes bytes compressed, and at most $bytes_max are allowed"
fi
