#!/usr/bin/env bash
# Configures, builds and tests under a sanitizer, in a build tree of its own (build/asan, build/tsan).
#
#   tests/sanitize.sh asan                 AddressSanitizer and UndefinedBehaviorSanitizer, every test
#   tests/sanitize.sh tsan                 ThreadSanitizer, all tests but those labelled grpc
#   tests/sanitize.sh tsan -R unit/cache   further arguments go to ctest
#
# Debian's libraries are not instrumented: ThreadSanitizer takes the hand-overs between threads of gRPC and RocksDB for
# races, and the maps of protobuf's messages have other members in instrumented code than in the library, so that their
# reflection crashes (the test preset leaves these out; tests/tsan.supp has the rest). Nor does it run the evaluator over
# the exported graphs: one thread, for an hour. Tests labelled `source` read sources only and run in the release tree. A
# first run builds everything; minutes per core.
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
