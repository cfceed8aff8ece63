#!/usr/bin/env bash
# Builds the peers of the ring benchmark: bench/ring/peers/build.sh OUT
#
# OUT/ring_go and OUT/ring_rust take the same flags: --kubeconfig FILE (or KUBECONFIG), and either --in and
# --out NAMESPACE (or IN_NAMESPACE and OUT_NAMESPACE) for one controller, or --count N with --prefix NAME for N
# of them in one process. Both print "ready" when their first lists are there.
set -euo pipefail
mkdir -p "${1:?usage: $0 OUT}"
out=$(cd "$1" && pwd)
cd "$(dirname "$(readlink -f "$0")")"
. ../../../dev/env.sh

(cd go && GOFLAGS='' go build -mod=readonly -trimpath -ldflags '-s -w' -o "$out/ring_go" .)
(cd rust && CARGO_TARGET_DIR=$out/.rust cargo build --locked --release --quiet -j "$HANGAR_JOBS")
cp "$out/.rust/release/ring_rust" "$out/ring_rust"
