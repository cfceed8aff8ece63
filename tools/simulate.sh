#!/bin/bash
# Plays scenarios of the simulation (src/simulation/README.md) for SIMULATION_SECONDS, or for SIMULATION_HOURS of their own time from the seed
# SIMULATION_FIRST on, or the one of SIMULATION_SEED.
set -euo pipefail
cd "$(dirname "$0")/.."
. dev/env.sh
cmake --preset test >/dev/null
cmake --build build/test --target simulation_tests >/dev/null
SIMULATION_SECONDS="${SIMULATION_SECONDS:-300}" exec build/test/bin/simulation_tests --gtest_filter='Scenario.HoldsForEverySeed'
