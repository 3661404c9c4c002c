#!/usr/bin/env bash
# The main job on a release build: one line a row, PASS|FAIL|SHORT|ROOF|UNMEASURED, the row, its figure, its bar.
# FAIL (counted and correctness rows) makes the exit status 1; SHORT (timing rows) does not.
#
#   tests/acceptance/main_job.sh            every row; the peer (onnxruntime) comes from PyPI into build/peers
#   tests/acceptance/main_job.sh --quick    counted and correctness rows only: what CI runs
#   tests/acceptance/main_job.sh --keep     also keeps the rows in tests/bench/results/
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/acceptance/main_job.py "$@"
