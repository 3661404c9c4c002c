#!/usr/bin/env bash
# The shape of the sources and of the test run: one line a row, PASS|FAIL|SHORT|UNMEASURED, the row, its figure, its bar. FAIL makes the
# exit status 1.
#
#   tests/acceptance/house.sh             counted rows; seconds after a build
#   tests/acceptance/house.sh --quick     the same
#   tests/acceptance/house.sh --time      also tests/run.sh in a fresh clone, twice: an hour of a machine that does nothing else
#   tests/acceptance/house.sh --keep      also keeps the rows in tests/bench/results/
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/acceptance/house.py "$@"
