#!/usr/bin/env bash
# Installs what building and testing need (Debian packages), builds the release preset, runs every test, and shows the counted
# rows of the acceptance scripts. On a bare Debian 12 with root or sudo this is the only command; CI runs exactly this.
#
#   tests/run.sh                 everything; says before each step how long the steps before it took
#   tests/run.sh -R service      only tests whose name matches (further arguments go to ctest)
set -euo pipefail
cd "$(dirname "$0")/.."

step() {
  echo "== $((SECONDS / 60)) min: $*"
  "$@"
}

step deploy/install_deps.sh --tests
step cmake --preset release
step cmake --build --preset release
if [[ $# -gt 0 ]]; then
  step ctest --preset release -j "$(nproc)" "$@"
  exit
fi
# Acceptance scripts take their rows from what ctest has run. Of the instruction sets between the lowest and the best of this
# machine each kernel case runs on a third; which one follows from the commit.
results=$PWD/build/release/Testing/results
rm -rf "$results"
# Compiled test kernels that no run has used for two weeks.
[[ ! -d build/release/test-kernels ]] || find build/release/test-kernels -mindepth 1 -maxdepth 1 -mtime +14 -exec rm -rf {} +
FUSION_ISA_TURN=$((16#$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0)))
export FUSION_ISA_TURN
# One test more than there are cores: those that run servers and programs wait half of their time.
step ctest --preset release -j $(($(nproc) + 1)) --output-junit "$results/ctest.xml"
export FUSION_TEST_RESULTS=$results
# Scripts of counts and values run side by side, and each is shown whole when it ends. The two that watch deadlines and memory run
# alone.
rows() {
  printf '%s\n' "$@" | xargs -P "$at_once" -I NAME bash -c '
    shown=$(tests/measured.py run "$1/acceptance.NAME.cost" "tests/acceptance/NAME.sh" --quick 2>&1)
    status=$?
    flock "$1" printf "%s\n" "$shown"
    exit $status' _ "$results"
}
at_once=$(nproc) step rows scheduler models width cpu_kernels main_job learning
at_once=1 step rows service faults
tests/measured.py slowest "$results"
echo "== $((SECONDS / 60)) min: all passed"
