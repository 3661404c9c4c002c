#!/usr/bin/env bash
# Installs what building and testing need (Debian packages), builds the release preset, and runs every test.
# On a bare Debian 12 with root or sudo this is the only command; CI runs exactly this.
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
# models.sh runs ONNX's tests through kernels, service.sh those of faults and attacks, and faults.sh random models of lengths,
# so ctest need not.
step ctest --preset release -j "$(nproc)" \
  -E '^(conformance/(onnx_kernels_[0-9]+|exported_graph_kernels)|service/(store_faults|admin|access|hostile|resilience)|property/families_right_or_refused)$'
for rows in main_job width scheduler models cpu_kernels service faults; do
  step "tests/acceptance/$rows.sh" --quick
done
echo "== $((SECONDS / 60)) min: all passed"
