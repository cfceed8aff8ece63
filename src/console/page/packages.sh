#!/usr/bin/env bash
# Prints the NODE_PATH of the packages that the page is made of, and fetches what is missing (dev/npm-package.sh).
set -euo pipefail
dev=$(dirname "$(readlink -f "$0")")/../../../dev
paths=()
for package in preact@11.2.0 uplot@1.6.32; do paths+=("$("$dev/npm-package.sh" $package)"); done
(IFS=: && echo "${paths[*]}")
