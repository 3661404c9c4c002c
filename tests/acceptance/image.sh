#!/usr/bin/env bash
# The container image: built by docker/build.sh, run with a read-only root and without privileges, and used: one line a row,
# PASS|FAIL|SHORT|UNMEASURED, the row, its figure, its bar. FAIL makes the exit status 1. Needs an apt mirror and either root or
# podman or docker.
#
#   tests/acceptance/image.sh             every row; some minutes after a build
#   tests/acceptance/image.sh --quick     the same
#   tests/acceptance/image.sh --keep      also keeps the rows in tests/bench/results/
#   tests/acceptance/image.sh --archive FILE   takes this image instead of building one
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/acceptance/image.py "$@"
