"""Rows of tests/bench/peers.sh. Standard library only; onnxruntime runs in a venv of its own."""

import argparse
import datetime
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "acceptance"))

import beside
import common
import contender

MODELS = ["bert_layer", "vit_block", "gpt2_layer_decode", "llama_small", "t5_encoder", "mha", "mlp20_m512_n256",
          "layernorm", "lstm_unroll10", "lstm", "conv_bn_relu"]


def measure(python, server, model, threads, seconds, overhead_us):
    """All three in turn."""
    bursts, failed = beside.bursts_in_turn({
        "ours": lambda: contender.ours(server, model, threads),
        "onnxruntime": lambda: contender.onnxruntime(python, model, threads),
        "unfused": lambda: contender.onnxruntime(python, model, threads, "none")}, seconds)
    if failed:
        raise RuntimeError("; ".join(failed.values()))
    row = {name: beside.summary(of) for name, of in bursts.items()}
    for peer in ("onnxruntime", "unfused"):
        off = overhead_us if row[peer]["median_us"] < beside.SMALL_US else 0
        speed, low, high = beside.ratio(bursts[peer], bursts["ours"], off)
        row[peer].update(taken_off_us=off, ratio=1 / speed, ratio_low95=1 / high, ratio_high95=1 / low,
                         bursts=len(bursts[peer]))
    return row


def markdown(result):
    out = [f"# Peer table, {result['date']}, commit {result['commit']}", "",
           f"{result['cpu']}, {result['cores']} cores. " + ", ".join(f"{n} {v}" for n, v in result["peers"].items()) +
           f", {result['compiler']}. Redo: `tests/bench/peers.sh`.", "",
           "Times in microseconds: median (p10 .. p90). Ratio: ours / peer, median over bursts of the ratio of medians, "
           "with a bootstrap 95 % interval; below 1 ours is faster. All sides ran in turn in one process each, inputs and "
           "outputs bound once. `unfused` is onnxruntime with every graph optimisation off.",
           f"Where the peer's median is below {beside.SMALL_US} us, what it takes for one Add of two numbers through the same "
           "calls is taken off its times before the ratio, not off ours: " +
           ", ".join(f"{us:.1f} us with {t} thread(s)" for t, us in result["call_overhead_us"].items()) + ".", "",
           "| model | threads | ours | onnxruntime | unfused | ratio | ratio to unfused |",
           "|---|---|---|---|---|---|---|"]

    def times(side):
        return f"{side['median_us']:.1f} ({side['p10_us']:.1f} .. {side['p90_us']:.1f})"

    def ratio(side):
        return f"{side['ratio']:.2f} [{side['ratio_low95']:.2f}, {side['ratio_high95']:.2f}]"

    for row in result["rows"]:
        if "error" in row:
            out.append(f"| {row['model']} | {row['threads']} | not measured: {row['error']} | | | | |")
            continue
        peer, unfused = row["onnxruntime"], row["unfused"]
        out.append(f"| {row['model']} | {row['threads']} | {times(row['ours'])} | {times(peer)} | {times(unfused)} | "
                   f"{ratio(peer)} | {ratio(unfused)} |")
    return "\n".join(out) + "\n"


def quick(python):
    """Whether both sides answer, and as often as asked."""
    rows = common.Rows()
    if python is None:
        rows.add("UNMEASURED", "peers answer", "onnxruntime cannot be installed here", "10 runs each")
        return 0
    with tempfile.TemporaryDirectory(prefix="peers.") as work, common.Daemon(work) as daemon:
        model = common.generate(work, "mlp")
        with contender.ours(daemon.address, model, 1) as ours, contender.onnxruntime(python, model, 1) as peer:
            counts = [len(side.burst(10)) for side in (ours, peer)]
    rows.counted("peers answer", counts == [10, 10], f"{counts[0]} and {counts[1]} runs", "10 runs each")
    return 1 if rows.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one model, counts only")
    parser.add_argument("--only", action="append", help="this model of fusion-modelgen; may be given more than once")
    parser.add_argument("--seconds", type=float, default=20, help="for each model and number of threads")
    parser.add_argument("--threads", type=int, action="append", help="default: 1 and 2")
    parser.add_argument("--out", type=pathlib.Path, default=common.RESULTS, help="directory of the table")
    options = parser.parse_args()
    python = contender.peer_python()
    if options.quick:
        return quick(python)
    if python is None:
        print("peers: onnxruntime cannot be installed here", file=sys.stderr)
        return 1
    cpu, commit = common.machine()
    result = {"date": datetime.date.today().isoformat(), "commit": commit, "cpu": cpu, "cores": os.cpu_count(),
              "peers": contender.PINNED, "compiler": common.compiler(), "seconds": options.seconds,
              "call_overhead_us": {}, "rows": []}
    with tempfile.TemporaryDirectory(prefix="peers.") as work, common.Daemon(work) as daemon:
        for threads in options.threads or [1, 2]:
            overhead_us = beside.call_overhead_us(
                work, lambda model, threads=threads: contender.onnxruntime(python, model, threads))
            result["call_overhead_us"][threads] = overhead_us
            for name in options.only or MODELS:
                row = {"model": name, "threads": threads}
                try:
                    model = common.generate(work, name)
                    row.update(measure(python, daemon.address, model, threads, options.seconds, overhead_us))
                    print(f"{name}, {threads} thread(s): {row['ours']['median_us']:.1f} us, onnxruntime "
                          f"{row['onnxruntime']['median_us']:.1f} us, ratio {row['onnxruntime']['ratio']:.2f}", flush=True)
                except RuntimeError as error:
                    row["error"] = str(error)
                    print(f"{name}, {threads} thread(s): {error}", file=sys.stderr, flush=True)
                result["rows"].append(row)
    options.out.mkdir(parents=True, exist_ok=True)
    base = options.out / f"peers-{result['date']}-{commit}"
    pathlib.Path(f"{base}.json").write_text(json.dumps(result, indent=1) + "\n")
    pathlib.Path(f"{base}.md").write_text(markdown(result))
    print(f"{base}.md")
    return 1 if any("error" in row for row in result["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
