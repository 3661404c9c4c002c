#!/usr/bin/env bash
# Installs what building and testing need (Debian packages), builds the release preset, and runs every test.
# On a bare Debian 12 with root or sudo this is the only command; CI runs exactly this.
#
#   tests/run.sh                 everything
#   tests/run.sh -R service      only tests whose name matches (further arguments go to ctest)
set -euo pipefail
cd "$(dirname "$0")/.."

deploy/install_deps.sh --tests
cmake --preset release
cmake --build --preset release
if [[ $# -gt 0 ]]; then
  exec ctest --preset release -j "$(nproc)" "$@"
fi
# models.sh runs ONNX's tests through kernels, and service.sh those of faults and attacks, so ctest need not.
ctest --preset release -j "$(nproc)" \
  -E '^(conformance/(onnx_kernels_[0-9]+|exported_graph_kernels)|service/(store_faults|admin|access|hostile|resilience))$'
tests/acceptance/main_job.sh --quick
tests/acceptance/width.sh --quick
tests/acceptance/scheduler.sh --quick
tests/acceptance/models.sh --quick
tests/acceptance/cpu_kernels.sh --quick
tests/acceptance/service.sh --quick
