#!/usr/bin/env bash
# Whole models, on a release build: one line a row, PASS|FAIL|SHORT|ROOF|UNMEASURED, the row, its
# figure, its bar. FAIL (counted and correctness rows) makes the exit status 1; SHORT (timing rows) does not.
#
#   tests/acceptance/models.sh               every row, some 40 minutes
#   tests/acceptance/models.sh --nightly     and 10 million executions of each fuzz target; hours
#   tests/acceptance/models.sh --quick       counted and correctness rows only
#   tests/acceptance/models.sh --keep        also keeps the rows in tests/bench/results/
#   tests/acceptance/models.sh --data DIR    where models/, real exported graphs with data, lies;
#                                               default: ../shared
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/acceptance/models.py "$@"
