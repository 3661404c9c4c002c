#!/usr/bin/env bash
# Runs clang-tidy (checks: .clang-tidy) over sources of ours, with the compile commands of a build.
#
#   tests/tidy.sh                          core/base and core/tensor: the bounded set of CI
#   tests/tidy.sh core/op server/observe/web.cc   folders and files
#   tests/tidy.sh --since main             sources changed since that commit, untracked ones too
#   tests/tidy.sh --all                    everything; minutes
#
# --build DIR: the build tree (build/release); --jobs N: at once (all cores); --fast: without clang-analyzer-*, which
# takes as long as all other checks together. Each file takes seconds: unlike the build, clang reads every header anew.
# Exit codes: 0 clean, 1 findings, 2 usage, 77 no clang-tidy.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/release
jobs=$(nproc)
since=""
all=0
fast=()
wanted=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --build) build=$2; shift 2 ;;
    --jobs) jobs=$2; shift 2 ;;
    --since) since=$2; shift 2 ;;
    --all) all=1; shift ;;
    --fast) fast=(--checks=-clang-analyzer-*); shift ;;
    -*) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    *) wanted+=("$1"); shift ;;
  esac
done
command -v clang-tidy >/dev/null || { echo "no clang-tidy (deploy/install_deps.sh --tests): not checked"; exit 77; }
[[ -f "$build/compile_commands.json" ]] || { echo "error: no $build/compile_commands.json: cmake --preset release" >&2; exit 2; }

# What fails must end the script: bash forgets the exit status of what stands in <(...).
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT
if [[ -n "$since" ]]; then
  git rev-parse --verify --quiet "$since^{commit}" >/dev/null || { echo "error: --since $since: no such commit" >&2; exit 2; }
  git diff --name-only --diff-filter=d "$since" >"$lists/changed"
  git ls-files -o --exclude-standard >>"$lists/changed"
  # A header is checked through its own source.
  sed -n -E 's/\.(cc|h)$/.cc/p' "$lists/changed" | sort -u >"$lists/wanted"
  mapfile -t wanted <"$lists/wanted"
elif [[ $all == 1 ]]; then
  wanted=(core server client tests)
elif [[ ${#wanted[@]} -eq 0 ]]; then
  wanted=(core/base core/tensor)
fi

database=$build/clang-tidy
python3 - "$build" "$database" "${wanted[@]}" >"$lists/files" <<'PY'
import os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, "tests/tools")
import compile_database
build, out, *wanted = sys.argv[1:]
commands = compile_database.load(build)
compile_database.write(commands, out)
root = os.getcwd() + "/"
for file in sorted(commands):
    name = file.removeprefix(root)
    if any(w and (name == w or name.startswith(w.rstrip("/") + "/")) for w in wanted):
        print(name)
PY
mapfile -t files <"$lists/files"
if [[ ${#files[@]} -eq 0 ]]; then
  [[ -n "$since" ]] || { echo "error: $build compiles no source in ${wanted[*]}" >&2; exit 2; }
  echo "no source to check"
  exit 0
fi
echo "clang-tidy: ${#files[@]} sources"
# The root prefix keeps findings in generated and system headers out.
status=0
printf '%s\n' "${files[@]}" |
  xargs -P "$jobs" -n 1 clang-tidy -p "$database" --quiet "${fast[@]}" --header-filter="^$PWD/(.*/)?(core|server|client|tests)/" \
    2> >(grep -v -E '^[0-9]+ warnings? (generated|treated)|^Suppressed|^Use -' >&2) || status=1
exit $status
