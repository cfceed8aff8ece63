#!/usr/bin/env bash
# Runs the page's unit tests with Node.js: test.sh DIRECTORY, for the bundles
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/../../../dev/env.sh"
out=${1:?usage: $0 DIRECTORY}
command -v esbuild >/dev/null || die "no esbuild: run dev/setup.sh"
rm -rf "$out"
esbuild "$here"/*_test.ts --bundle --platform=node --format=esm --target=node18 --out-extension:.js=.mjs --log-level=warning --outdir="$out"
node --test "$out"/*.mjs
