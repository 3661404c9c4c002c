#!/usr/bin/env bash
# Configures, builds and tests under a sanitizer, in a build tree of its own (build/asan, build/tsan).
#
#   tests/sanitize.sh asan                 AddressSanitizer and UndefinedBehaviorSanitizer, every test
#   tests/sanitize.sh tsan                 ThreadSanitizer, all tests but those labelled grpc
#   tests/sanitize.sh tsan -R unit/cache   further arguments go to ctest
#
# The packaged gRPC is not instrumented: ThreadSanitizer reports its hand-overs between threads as races. Tests labelled
# `source` read sources only and run in the release tree. A first run builds everything; minutes per core.
set -euo pipefail
cd "$(dirname "$0")/.."

preset="${1:-}"
if [[ "$preset" != asan && "$preset" != tsan ]]; then
  echo "usage: $0 asan|tsan [argument of ctest...]" >&2
  exit 2
fi
shift
cmake --preset "$preset"
cmake --build --preset "$preset"
# What instrumented tests need of time and memory differs from run to run: no more of them at once than cores.
exec ctest --preset "$preset" -j "$(nproc)" "$@"
