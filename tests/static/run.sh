#!/usr/bin/env bash
# The programs without shared libraries: what they are, and then the end-to-end tests with them in place of the ordinary ones.
# Needs root, `make static` and `make guests`. --only: without the end-to-end tests. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. dev/env.sh

export HANGAR_TOOLS_DIR HANGAR_BIN_DIR=$PWD/build/static HANGAR_GUESTS_DIR=${HANGAR_GUESTS_DIR:-$PWD/build/guests} PYTHONDONTWRITEBYTECODE=1
dev/setup.sh --tests
HANGAR_TOOLS_DIR=$(dev/build-tools.sh)
/usr/bin/python3 -m pytest -q -p no:cacheprovider tests/static
if [ "${1:-}" = --only ]; then exit; fi
dev/build-collector.sh >/dev/null
# Without the tests of other programs (the package, hangar-node), and of points at which only a build for tests ends itself.
without=(--ignore=tests/e2e/test_package.py --ignore=tests/e2e/test_node_installer.py
  -k "not test_a_host_killed_between_two_steps and not test_a_host_killed_while_machines_below")
exec /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/e2e -n "$((HANGAR_JOBS + 1))" --dist loadgroup "${without[@]}" "$@"
