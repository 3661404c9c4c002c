#!/usr/bin/env bash
# From a bare Debian 12 to the fused kernels of a BERT-base encoder layer: installs the packages, builds, starts a
# fusiond on an embedded store, plans, compiles, checks and runs the layer, and shows that a restarted fusiond answers
# from its store. Needs root or sudo for the packages only; leaves nothing running.
#
#   deploy/quickstart.sh              the layer is made by the project's own generator
#   deploy/quickstart.sh MODEL.onnx   the same with your model
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

step "packages (deploy/install_deps.sh)"
deploy/install_deps.sh

step "build (cmake --preset release; several minutes the first time)"
cmake --preset release >/dev/null
cmake --build --preset release --target fusiond fusionctl fusion-modelgen | tail -n 1

bin=build/release/bin
work=build/quickstart
rm -rf "$work" && mkdir -p "$work"
socket_dir=$(mktemp -d /tmp/fusiond.XXXXXX)  # socket paths are short
server=unix:$socket_dir/socket
daemon=

stop_daemon() {
  [[ -n "$daemon" ]] || return 0
  kill -TERM "$daemon" 2>/dev/null || true
  wait "$daemon" || true
  daemon=
}
trap 'stop_daemon; rm -rf "$socket_dir"' EXIT

start_daemon() {
  "$bin/fusiond" --listen "$server" --store "$work/store" --drain-seconds 0 2>>"$work/fusiond.log" &
  daemon=$!
  for _ in $(seq 150); do
    "$bin/fusionctl" status --server "$server" >/dev/null 2>&1 && return 0
    kill -0 "$daemon" 2>/dev/null || break
    sleep 0.2
  done
  echo "fusiond did not start; the end of its log:" >&2
  tail -n 5 "$work/fusiond.log" >&2
  exit 1
}

model=${1:-$work/bert_layer.onnx}
if [[ $# -eq 0 ]]; then
  step "model: one BERT-base encoder layer, 128 tokens, 55 nodes as an exporter writes them"
  "$bin/fusion-modelgen" bert_layer --out "$model"
fi

step "fusiond with an empty store in $work/store"
start_daemon
"$bin/fusionctl" status --server "$server"

step "cold: plan, generate, compile and check every kernel (fusionctl plan)"
"$bin/fusionctl" plan --server "$server" "$model"

step "outputs against the reference evaluator (fusionctl verify)"
"$bin/fusionctl" verify --server "$server" "$model"

step "latency, fused against op by op (fusionctl bench)"
"$bin/fusionctl" bench --server "$server" "$model"

step "six small models, one thread and all (fusionctl bench --suite)"
"$bin/fusionctl" bench --server "$server" --suite

step "warm: the same request again"
"$bin/fusionctl" plan --server "$server" "$model" | grep -E '^(plan|time|kernels):'

step "restart: a new fusiond answers from the store"
stop_daemon
start_daemon
"$bin/fusionctl" plan --server "$server" "$model" | grep -E '^(plan|time|kernels):'

printf '\ndone. Try: %s plan MODEL.onnx, or %s --help\n' "$bin/fusionctl" "$bin/fusiond"
