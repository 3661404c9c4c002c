#!/usr/bin/env bash
# Builds the libFuzzer targets (clang, address and undefined behaviour) and runs them, as many at once as there are cores:
# importers of ONNX and OpGraph, the language of custom ops with expressions and loop bodies, texts of graphs, rules, plans,
# messages of compile workers. It begins with the inputs in tests/fuzz/regressions: earlier findings. A new finding
# is left in build/fuzz/findings and makes the exit status 1.
#
#   tests/fuzz/run.sh                          60 seconds each, which the nightly run does
#   tests/fuzz/run.sh --seconds 600            longer
#   tests/fuzz/run.sh --nightly                10 million inputs each, in 100 rounds of which each begins anew; hours
#   tests/fuzz/run.sh --executions 100000      as many inputs each round
#   tests/fuzz/run.sh --only onnx --rounds 3   one target; as many rounds. A corpus that has grown for millions of inputs
#                                              makes fewer than a thousand of them a second
set -euo pipefail
cd "$(dirname "$0")/../.."

limit=(-max_total_time=60)
rounds=1
only=
while [[ $# -gt 0 ]]; do
  case "$1" in
    --seconds) limit=("-max_total_time=$2"); shift 2 ;;
    --nightly) limit=(-runs=100000); rounds=100; shift ;;
    --executions) limit=("-runs=$2"); shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    *) echo "usage: $0 [--seconds N | --nightly | --executions N] [--rounds N] [--only TARGET]" >&2; exit 2 ;;
  esac
done

deploy/install_deps.sh --tests
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target fuzzers >&2

work=build/fuzz
models=/usr/share/libonnx-testdata/data/node
fuzz() { # NAME ROUND PROGRAM: a corpus of its own, kept for the next time where there is one round only
  local name=$1 program=$work/bin/$3_fuzz
  local corpus=$work/corpus/$name findings=$work/findings/$name log=$work/$name.log said=$name
  if [[ $rounds -gt 1 ]]; then
    corpus+=.$2 findings+=.$2 log=$work/$name.$2.log said="$name, round $2 of $rounds"
    rm -rf "$corpus"
  fi
  mkdir -p "$corpus" "$findings"
  # Corpora grow large here: weighing their entropies takes half of the time, stacks of every allocation a tenth. The stacks
  # of a finding come from running it again.
  local regressions=()
  [[ -d tests/fuzz/regressions/$name ]] && regressions=(tests/fuzz/regressions/"$name")
  if ASAN_OPTIONS=malloc_context_size=1 "$program" "$corpus" "$work/seeds/$name" "${regressions[@]}" "${limit[@]}" \
      -entropic=0 -max_len=65536 -timeout=20 -rss_limit_mb=4096 -artifact_prefix="$findings/" -print_final_stats=1 \
      >"$log" 2>&1; then
    echo "PASS fuzz $said: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") executions, no finding"
  else
    local finding
    finding=$(ls -t "$findings" | head -1)
    echo "FAIL fuzz $said: $findings/$finding, from $log:"
    # Without an input there is nothing to run again; one that does not fail alone is shown as it failed.
    if [[ -n $finding ]] && ! "$program" -timeout=20 -rss_limit_mb=4096 "$findings/$finding" >"${log%.log}.again.log" 2>&1; then
      log=${log%.log}.again.log
    fi
    grep -m1 -B3 -A12 -E 'ERROR: |runtime error: ' "$log" || tail -20 "$log"
    if [[ -n $finding ]]; then # Whoever has only this output can make the input again from it.
      echo "base64 of the input:"
      head -c 4096 "$findings/$finding" | base64
    fi
    return 1
  fi
}

running=0
failed=0
start() { # NAME ROUND PROGRAM
  if [[ $running -ge $(nproc) ]]; then
    wait -n || failed=1
    running=$((running - 1))
  fi
  fuzz "$@" &
  running=$((running + 1))
}
targets=(onnx:import op_graph:import language:language graph:graph rules:rules plan:plan worker:worker)
if [[ -n $only && " ${targets[*]}" != *" $only:"* ]]; then
  echo "$0: no target $only; targets: ${targets[*]%%:*}" >&2
  exit 2
fi
for target in "${targets[@]}"; do
  name=${target%%:*} program=$work/bin/${target##*:}_fuzz
  seeds=("--seeds=$work/seeds/$name")
  [[ $name == onnx ]] && seeds+=("$models")
  mkdir -p "$work/seeds/$name"
  "$program" "${seeds[@]}" >"$work/$name.seeds.log" 2>&1
done
for ((round = 1; round <= rounds; ++round)); do
  for target in "${targets[@]}"; do
    [[ -n $only && $only != "${target%%:*}" ]] || start "${target%%:*}" "$round" "${target##*:}"
  done
done
for (( ; running > 0; --running)); do wait -n || failed=1; done
exit $failed
