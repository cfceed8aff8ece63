#!/usr/bin/env bash
# Builds the simulation, and runs it. Arguments go to bench.py. With --on-host as the first argument: policies on a real host instead
# (on_host.py, which gets the other arguments). With --day: the picture of a day in docs/operating/sleep.md.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../run_env.sh"

if [ "${1:-}" = --on-host ]; then
  shift
  guests operators
  exec /usr/bin/python3 bench/sleep/on_host.py "$@"
fi
simulation=$(program sleep_simulation)
if [ "${1:-}" = --day ]; then
  shift
  exec python3 bench/sleep/day_picture.py --simulation="$simulation" "$@"
fi
exec python3 bench/sleep/bench.py --simulation="$simulation" "$@"
