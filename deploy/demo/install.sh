#!/usr/bin/env bash
# Puts together what `hangar demo` needs: install.sh OUT --bin DIR --guests DIR. OUT is share/hangar of an installation:
# it gets crds/ and demo/, with the show, its manifests and its modules. DIR of --guests has pipeline.wasm and ring.wasm.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
root=$here/../..
. "$root/dev/env.sh"

usage="usage: $0 OUT --bin DIR --guests DIR"
[ $# = 5 ] && [ "$2" = --bin ] && [ "$4" = --guests ] || die "$usage"
out=$1 bin=$3 guests=$5
demo=$out/demo
# As the manifests of the examples, but in the demonstration's namespace, and with installed modules.
manifest() { # EXAMPLE NAME
  mkdir -p "$demo/examples/$1"
  sed -e 's/^  namespace: default$/  namespace: hangar-demo/' -e 's/namespace: default}/namespace: hangar-demo}/' \
    -e 's|build/guests/|modules/|' "$root/examples/$1/$2" >"$demo/examples/$1/$2"
}

umask 022
install -D -m 644 -t "$out/crds" "$root"/deploy/crds/*
install -D -m 755 -t "$demo" "$here/show.sh"
install -m 644 -t "$demo" "$here/words.sh" "$here/rights.yaml"
install -D -m 644 -t "$demo/modules" "$guests/pipeline.wasm" "$guests/ring.wasm"

for name in pipeline.yaml failing.yaml airway.yaml; do manifest pipeline $name; done
sed -i 's/^metadata:$/&\n  labels: {hangar-demo: made}/' "$demo/examples/pipeline/airway.yaml"
for name in testresources.yaml number.yaml; do manifest ring $name; done
awk 'BEGIN {RS = "---\n"; ORS = "---\n"} /kind: ClusterRole\n/' "$root/examples/ring/ring.yaml" |
  sed 's/name: ring-/name: hangar-demo-ring-/' >"$demo/examples/ring/roles.yaml"
for name in rights.yaml workflow.yaml; do manifest database-provisioner $name; done
NODE_PATH=$("$root/dev/npm-package.sh" xstate@4.38.3) "$bin/hangar" machine build "$root/examples/database-provisioner" \
  --name=database-provisioner >"$demo/machine.yaml"
