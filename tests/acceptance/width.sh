#!/usr/bin/env bash
# What a usable first version offers, on a release build: one line a row, PASS|FAIL|SHORT|ROOF|UNMEASURED, the row, its
# figure, its bar. FAIL (counted and correctness rows) makes the exit status 1; SHORT (timing rows) does not.
#
#   tests/acceptance/width.sh               every row, some 20 minutes
#   tests/acceptance/width.sh --quick       counted and correctness rows only, on small models: what CI runs
#   tests/acceptance/width.sh --keep        also keeps the rows in tests/bench/results/
#   tests/acceptance/width.sh --data DIR    where models/transformer/gpt2_past/model.onnx and the like lie;
#                                           default: ../shared
# Sanitizers and static checks have scripts of their own.
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/acceptance/width.py "$@"
