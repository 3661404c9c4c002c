#!/usr/bin/env bash
# The night: kernel tests on every instruction set of this machine, every acceptance script whole, with timing rows, a minute of each
# fuzz target (models.sh) and a soak of five minutes (service.sh). Goes on after one that fails; exits with 1 if any did. Wants a machine that does nothing else.
#
#   tests/nightly.sh           some hours; says before each script how long those before it took
#   tests/nightly.sh --keep    also keeps the rows in tests/bench/results/ (arguments go to every script)
set -euo pipefail
cd "$(dirname "$0")/.."

source tests/prepare.sh
failed=()
echo "== 0 min: ctest --preset release -R ^conformance/kernels_"
ctest --preset release -j "$(nproc)" -R '^conformance/kernels_' || failed+=("ctest")
for script in tests/acceptance/*.sh; do  # each installs and builds what it measures
  echo "== $((SECONDS / 60)) min: $script $*"
  "$script" "$@" || failed+=("$script")
done
if [[ ${#failed[@]} -gt 0 ]]; then
  echo "== $((SECONDS / 60)) min: failed: ${failed[*]}"
  exit 1
fi
echo "== $((SECONDS / 60)) min: all passed"
