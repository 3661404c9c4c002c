#!/usr/bin/env bash
# CPU kernels beside the best of their peers, on a release build: one line a row, PASS|FAIL|SHORT|ROOF|UNMEASURED, the row,
# its figure, its bar. FAIL (counted and correctness rows) makes the exit status 1; SHORT and ROOF (timing rows) do not.
#
#   tests/acceptance/cpu_kernels.sh               every row, about two hours; wants a machine that does nothing else
#   tests/acceptance/cpu_kernels.sh --quick       counted and correctness rows only: what CI runs
#   tests/acceptance/cpu_kernels.sh --keep        also keeps the rows in tests/bench/results/
#   tests/acceptance/cpu_kernels.sh --only gemm --seconds 2 --threads 1
#                                                 timing rows whose name begins so; seconds for each case
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/acceptance/cpu_kernels.py "$@"
