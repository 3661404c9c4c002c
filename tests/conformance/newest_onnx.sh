#!/usr/bin/env bash
# The node tests of the newest onnx on PyPI through "fusionctl verify", on a release build: how many are right, wrong and
# refused, and what is refused by operator. A wrong one makes the exit status 1, and so does one that is refused for another
# reason than that it is about strings, sequences, optionals, maps, training, or the decoding of images. For the night: it
# compiles kernels for some 2,000 models.
#
#   tests/conformance/newest_onnx.sh                  half an hour and more
#   tests/conformance/newest_onnx.sh --only TEXT      tests whose name contains it; may be given more than once
#   tests/conformance/newest_onnx.sh --keep           also keeps the rows in tests/bench/results/
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/conformance/newest_onnx.py "$@"
