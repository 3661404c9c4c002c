#!/usr/bin/env bash
# Installs the Debian 12 packages that fusiond builds and runs with. Needs root (or sudo) and an apt mirror; nothing
# else is downloaded. Packages that are already present are left alone, so a second run takes a second.
#
#   deploy/install_deps.sh            build and run the service
#   deploy/install_deps.sh --tests    also what only the tests and benchmarks need
set -euo pipefail

build_packages=(
  g++ cmake ninja-build pkg-config binutils ca-certificates
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev
  librocksdb-dev prometheus-cpp-dev libmicrohttpd-dev zlib1g-dev libonnx-dev libssl-dev libjemalloc-dev
  libcli11-dev nlohmann-json3-dev libfmt-dev libspdlog-dev libsmartcols-dev libarchive-dev libseccomp-dev graphviz
  libgtest-dev libgmock-dev libbenchmark-dev
)
# clang and clang-tidy share their libraries with clang-format; without them the checks that use them are skipped, as are
# that of the unit without systemd-analyze and those of dashboards and alerts without prometheus.
test_packages=(libonnx-testdata clang clang-format clang-tidy python3 python3-venv curl git
  bubblewrap systemd prometheus)

packages=("${build_packages[@]}")
if [[ "${1:-}" == "--tests" ]]; then
  packages+=("${test_packages[@]}")
elif [[ $# -gt 0 ]]; then
  echo "usage: $0 [--tests]" >&2
  exit 2
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [[ "$status" == "install ok installed" ]] || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || {
    echo "error: these packages are missing and neither root nor sudo is available: ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# The tests only run the programs of prometheus: its service is neither started nor enabled here.
service=
if [[ " ${missing[*]} " == *" prometheus "* ]]; then
  service=prometheus
  policy=/usr/sbin/policy-rc.d
  if [[ ! -e "$policy" ]]; then
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
  fi
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
if [[ -n "$service" ]] && command -v systemctl >/dev/null; then
  "${as_root[@]}" systemctl --quiet disable "$service" 2>/dev/null || true
fi
