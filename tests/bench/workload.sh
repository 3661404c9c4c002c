#!/usr/bin/env bash
# A mixed load of several tenants on one fusiond, and what is seen of it: fusionctl report in all formats, every query of the dashboards,
# alerts, the overhead of reports. One line a row, PASS|FAIL|SHORT|UNMEASURED, the row, its figure, its bar.
#
#   tests/bench/workload.sh                    two minutes of load
#   tests/bench/workload.sh --minutes 10       so many minutes
#   tests/bench/workload.sh --quick            some seconds, without the overhead: what CI runs
#   tests/bench/workload.sh --pictures DIR     also the report's page at 1280 and 390 px, light and dark, as PNG (needs chromium)
#   tests/bench/workload.sh --keep             also keeps the rows and the report in tests/bench/results/
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/prepare.sh
exec python3 -B tests/acceptance/workload.py "$@"
