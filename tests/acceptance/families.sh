#!/usr/bin/env bash
# Plans that leave dims open, on a release build: one line a row, PASS|FAIL|SHORT, the row, its figure, its bar.
# FAIL (counted and correctness rows) makes the exit status 1; SHORT (timing rows) does not.
#
#   tests/acceptance/families.sh             BERT and Llama layers, with timing: some 10 minutes
#   tests/acceptance/families.sh --quick     small models, counted and correctness rows only: what CI runs
#   tests/acceptance/families.sh --keep      also keeps the rows in tests/bench/results/
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/acceptance/families.py "$@"
