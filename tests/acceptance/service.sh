#!/usr/bin/env bash
# The service under load, faults and attack, on a release build: one line a row, PASS|FAIL|SHORT|ROOF|UNMEASURED, the row, its
# figure, its bar. FAIL (counted and correctness rows) makes the exit status 1; SHORT (timing rows) does not.
#
#   tests/acceptance/service.sh               every row
#   tests/acceptance/service.sh --quick       counted and correctness rows only, in short: what CI runs
#   tests/acceptance/service.sh --only TEXT   rows of the groups whose name contains it; may be given more than once
#   tests/acceptance/service.sh --only soak --soak-seconds 3600      the long soak
#   tests/acceptance/service.sh --keep        also keeps the rows in tests/bench/results/
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/acceptance/service.py "$@"
