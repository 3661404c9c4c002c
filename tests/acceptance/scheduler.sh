#!/usr/bin/env bash
# Fusion derived, chosen and explained, on a release build: one line a row, PASS|FAIL|SHORT|ROOF|UNMEASURED, the row, its
# figure, its bar. FAIL (counted and correctness rows) makes the exit status 1; SHORT (timing rows) does not.
#
#   tests/acceptance/scheduler.sh               every row, some 10 minutes
#   tests/acceptance/scheduler.sh --quick       counted and correctness rows only, fewer random graphs: what CI runs
#   tests/acceptance/scheduler.sh --keep        also keeps the rows, and how planning time grows, in tests/bench/results/
#   tests/acceptance/scheduler.sh --data DIR    where models/transformer/gpt2_past/model.onnx and the like lie;
#                                               default: ../shared
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/acceptance/scheduler.py "$@"
