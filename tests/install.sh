#!/usr/bin/env bash
# Installs a build into scratch directories and uses what is there: the unit names its paths, and fusiond finds the
# programs that belong to it, compiles a kernel and answers; what the manifest lists is all that must go again.
#
#   tests/install.sh build/release      ctest runs it with the build that it tests
set -euo pipefail

[[ $# -eq 1 && -f "$1/CMakeCache.txt" ]] || { echo "usage: $0 BUILD" >&2; exit 2; }
deploy=$(cd "$(dirname "$0")/../deploy" && pwd)
build=$(cd "$1" && pwd)
work=$(mktemp -d /tmp/install.XXXXXX)  # socket paths are short
daemon=

cleanup() {
  [[ -z "$daemon" ]] || kill -KILL "$daemon" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

fail() {
  echo "install.sh: $1" >&2
  shift
  [[ $# -eq 0 ]] || tail -n 20 "$@" >&2
  exit 1
}

# As a component, which has a manifest of its own: install_manifest.txt is of whoever installed this build for good.
install_to() {
  cmake --install "$build" --component Unspecified --prefix "$1" >"$work/install.log" 2>&1 ||
    fail "cmake --install fails" "$work/install.log"
}

# As deploy/README.md says, but below a directory: the unit as it is in deploy/.
DESTDIR=$work/root install_to /usr
cmp "$deploy/fusiond.service" "$work/root/usr/lib/systemd/system/fusiond.service"
cmp "$deploy/fusiond.conf" "$work/root/etc/fusiond.conf"

# With another prefix, twice: an upgrade keeps the configuration.
prefix=$work/opt
install_to "$prefix"
echo "# mine" >>"$prefix/etc/fusiond.conf"
install_to "$prefix"
grep -qx "# mine" "$prefix/etc/fusiond.conf" || fail "the configuration was overwritten"
for program in fusiond fusion-worker fusion-exec fusionctl; do
  [[ -x "$prefix/bin/$program" ]] || fail "$program is not installed"
done
source=$(dirname "$deploy")
readmes=$(cd "$source" && find README.md client core deploy docker proto server tests -name README.md | sort)
installed=$(cd "$prefix/share/doc/fusiond" && find . -name README.md -printf '%P\n' | sort)
[[ "$installed" == "$readmes" ]] || fail "other READMEs are installed than the tree has: $installed"
for file in fusion_rules.yml prometheus.yml grafana.yml dashboards; do
  diff -r "$deploy/observability/$file" "$prefix/share/fusiond/observability/$file"
done
unit=$prefix/lib/systemd/system/fusiond.service
start="$prefix/bin/fusiond --config $prefix/etc/fusiond.conf"
grep -qx "ExecStart=$start --socket-group fusion" "$unit" || fail "the unit starts something else" "$unit"
grep -qx "ExecStartPre=$start --socket-group fusion --check-config" "$unit" ||
  fail "the unit checks something else" "$unit"
grep -qx "g fusion -" "$prefix/lib/sysusers.d/fusiond.conf" || fail "nobody makes the group of the unit"

# From here on with nothing but what is installed, and a model.
"$build/bin/fusion-modelgen" softmax --out "$work/softmax.onnx" >"$work/modelgen.log"
cd /
"$prefix/bin/fusiond" --version >/dev/null
"$prefix/bin/fusionctl" --help >/dev/null
server=unix:$work/socket
"$prefix/bin/fusiond" --listen "$server" --store "$work/store" --drain-seconds 0 2>"$work/fusiond.log" &
daemon=$!
for _ in $(seq 150); do
  "$prefix/bin/fusionctl" status --server "$server" >/dev/null 2>&1 && break
  kill -0 "$daemon" 2>/dev/null || break
  sleep 0.2
done
"$prefix/bin/fusionctl" verify --server "$server" "$work/softmax.onnx" >"$work/verify.log" 2>&1 ||
  fail "fusionctl verify fails" "$work/verify.log" "$work/fusiond.log"
grep -q "^PASS against the reference evaluator" "$work/verify.log" || fail "nothing was verified" "$work/verify.log"
grep -q " 0 fallbacks" "$work/verify.log" || fail "a kernel was refused" "$work/verify.log"
kill -TERM "$daemon"
wait "$daemon" || fail "fusiond ended with $?" "$work/fusiond.log"
daemon=

# fusionctl finds the fusiond beside it, which finds what the one before has stored.
"$prefix/bin/fusionctl" plan --store "$work/store" "$work/softmax.onnx" >"$work/plan.log" 2>&1 ||
  fail "fusionctl plan fails" "$work/plan.log"
grep -qE "^plan: .* from store" "$work/plan.log" || fail "the plan is not that of the store" "$work/plan.log"

# As deploy/README.md removes it.
xargs -d '\n' rm <"$build/install_manifest_Unspecified.txt"
left=$(find "$prefix" -type f)
[[ "$left" == "$prefix/etc/fusiond.conf" ]] || fail "other files than the configuration are left: $left"
