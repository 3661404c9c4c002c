#!/usr/bin/env bash
# Fused models written back to ONNX, on a release build: one line a row, PASS|FAIL|UNMEASURED, the row, its figure, its bar.
# FAIL makes the exit status 1. Both files run in onnxruntime, which comes from PyPI into build/peers; where that fails its
# row is UNMEASURED.
#
#   tests/acceptance/export.sh              20 models and more
#   tests/acceptance/export.sh --quick      3 small generated models: what CI runs
#   tests/acceptance/export.sh --keep       also keeps the rows in tests/bench/results/
#   tests/acceptance/export.sh --data DIR   where models/transformer/gpt2_past/model.onnx and the like lie;
#                                           default: ../shared
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/acceptance/export.py "$@"
