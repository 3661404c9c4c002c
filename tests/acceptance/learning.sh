#!/usr/bin/env bash
# What operators see of a running service, how far estimates are from measured times, what fusionctl tune gains, what a mixed load shows,
# on a release build: one line a row, PASS|FAIL|SHORT|UNMEASURED, the row, its figure, its bar.
# FAIL (counted and correctness rows) makes the exit status 1; SHORT (timing rows) does not.
#
#   tests/acceptance/learning.sh               every row
#   tests/acceptance/learning.sh --quick       counted and correctness rows only: what CI runs
#   tests/acceptance/learning.sh --only TEXT   rows of the groups whose name contains it; may be given more than once
#   tests/acceptance/learning.sh --keep        also keeps the rows in tests/bench/results/
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/acceptance/learning.py "$@"
