#!/usr/bin/env bash
# What users, other tools' models and attackers have found, as kinds, on a release build: one line a row,
# PASS|FAIL|SHORT|UNMEASURED, the row, its figure, its bar. FAIL (counted and correctness rows) makes the exit status 1;
# SHORT (timing rows) does not.
#
#   tests/acceptance/faults.sh               every row; builds an AddressSanitizer tree too (build/asan); hours
#   tests/acceptance/faults.sh --quick       counted and correctness rows only, fewer models: what CI runs
#   tests/acceptance/faults.sh --only TEXT   rows of the groups whose name contains it; may be given more than once
#   tests/acceptance/faults.sh --keep        also keeps the rows in tests/bench/results/
#   tests/acceptance/faults.sh --data DIR    where cases/, models with data, lies; default: ../shared
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/acceptance/faults.py "$@"
