#!/usr/bin/env bash
# Kernels, layers and models beside onnxruntime, openvino, torch, jax and tvm in one run: short bursts of each in turn, 1 and 2
# threads, medians, 95 % intervals of ratios, the roof of this machine. Peers come from PyPI into build/peers*; one that cannot
# be had or cannot run a case is named. Needs a machine that does nothing else. More: "Beside peers" in tests/README.md.
#
#   tests/bench/peers.sh                          all of it, many hours: each peer compiles each case; JSON, Markdown and a
#                                                 chart in tests/bench/results/
#   tests/bench/peers.sh --only gemm --seconds 1 --threads 1 --peer openvino --out DIR
#                                                 groups or cases whose name begins so, beside onnxruntime and this peer
#   tests/bench/peers.sh --quick                  one small model, only whether every side answers: nothing is kept,
#                                                 onnxruntime and openvino are installed, others take part where they are
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/bench/peers/measure.py "$@"
