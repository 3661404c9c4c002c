#!/usr/bin/env bash
# Eleven generated models beside onnxruntime in one run: short bursts of each in turn, 1 and 2 threads, medians, and a 95 %
# interval of the ratio. onnxruntime comes from PyPI into build/peers. Needs a machine that does nothing else.
#
#   tests/bench/peers.sh                          all of it, some 10 minutes; kept in tests/bench/results/
#   tests/bench/peers.sh --only mlp --seconds 1 --out DIR
#   tests/bench/peers.sh --quick                  one model, only whether both sides answer: nothing is kept
set -euo pipefail
cd "$(dirname "$0")/../.."

# What is measured is what the sources say now; with nothing to do this takes a second.
deploy/install_deps.sh --tests
cmake --preset release >/dev/null
cmake --build --preset release >&2
exec python3 -B tests/bench/peers/measure.py "$@"
