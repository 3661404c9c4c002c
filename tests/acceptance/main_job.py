"""Rows of tests/acceptance/main_job.sh. Standard library only; onnxruntime is asked in a venv of its own."""

import json
import os
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench/peers"))

import contender
from common import BIN, ROOT, Daemon, ctl, generate, interval, run, test_rows
import common

# Generator model -> its arguments.
MODELS = {
    "bert_layer": [],
    "vit_block": [],
    "gpt2_layer": [],
    "llama_small": [],
    "mlp": [],
    "mlp4_m64_n1024": [],
    "layernorm": [],
    "mha": [],
}


def verify_rows(rows, work):
    with Daemon(work) as daemon:
        for name, arguments in MODELS.items():
            rows.section(verify_row, name, generate(work, name, *arguments), daemon.address)


def verify_row(rows, name, model, server):
    status, report = ctl("verify", model, "--server", server, check=False)
    if "outputs" not in report:
        rows.counted(f"verify {name}", False, report["error"]["message"][:120], "outside 0, fallbacks 0")
        return
    outside = sum(o["outside"] for o in report["outputs"])
    worst = max(float(o["max_rel"]) for o in report["outputs"])
    ok = status == 0 and report["pass"] and outside == 0 and report["fallbacks"] == 0
    rows.counted(
        f"verify {name}", ok,
        f"{report['nodes']} nodes, {report['kernels']} kernels, max_rel {worst:.1e}, outside {outside}, "
        f"fallbacks {report['fallbacks']}", "outside 0, fallbacks 0")


def plan_rows(rows, work):
    """Counts of the BERT layer's plan, for this machine and for the generic ones."""
    model = generate(work, "bert_layer")
    seq = 128
    targets = [("this machine", ["--threads", "1"]), ("this machine", [])]
    targets += [(isa, ["--isa", isa, "--threads", t]) for isa in ("x86-64-v2", "avx2", "avx512") for t in ("1", "2", "8")]
    for what, arguments in targets:
        _, plan = ctl("plan", model, "--no-compile", *arguments)
        kernels = plan["totals"]["kernels"]
        traffic = 1 - plan["totals"]["activation_bytes"] / plan["op_by_op"]["activation_bytes"]
        square = [t for t in plan["tensors"] if t["dims"].count(seq) > 1]
        label = f"BERT layer, {what}, {plan['threads']} thread(s)"
        rows.counted(f"{label}: kernels", kernels <= 9, f"{kernels}", "<= 9")
        rows.counted(f"{label}: traffic", traffic >= 0.76, f"-{100 * traffic:.1f} %", ">= -76 %")
        rows.counted(f"{label}: no scores off chip", not square, f"{len(square)} tensors with two sequence dims", "0")


def cache_rows(rows, work):
    store = pathlib.Path(work) / "store"
    first = generate(work, "bert_layer")
    other = generate(work, "bert_layer", "--seed", "2", file="bert_other_weights.onnx")
    deep = generate(work, "bert_12l")
    with Daemon(work, store) as daemon:
        ctl("plan", first, "--server", daemon.address, "--threads", "1")
        _, again = ctl("plan", other, "--server", daemon.address, "--threads", "1")
        rows.counted("other weight values", again["cache"] == "memory", f"answer from {again['cache']}", "memory")
        _, twelve = ctl("plan", deep, "--server", daemon.address, "--threads", "1")
        request = daemon.calls(3)[-1]["bytes_in"]
        rows.counted("12 layers: request", request < 100_000, f"{request} bytes", "< 100000 bytes")
        # The first and the last layer have neighbours of another kind; three layers have one of each kind.
        three = generate(work, "bert_12l", "--layers", "3", file="bert_3l.onnx")
        _, few = ctl("plan", three, "--server", daemon.address, "--threads", "1", "--no-compile")
        rows.counted("12 equal layers compile once", len(twelve["kernels"]) == len(few["kernels"]),
                     f"{len(twelve['kernels'])} shared objects for {twelve['totals']['launches']} launches",
                     f"{len(few['kernels'])}, those of three layers")
    with Daemon(work, store) as daemon:
        _, kept = ctl("plan", first, "--server", daemon.address, "--threads", "1")
        rows.counted("restart", kept["cache"] == "store" and all(k["cached"] for k in kept["kernels"]),
                     f"answer from {kept['cache']}", "store, every kernel cached")


def bad_input_rows(rows):
    test_rows(rows, "bad input", "server_test", "BadRequestTest.*", "tests/service/bad_request_test.cc")
    test_rows(rows, "bad input", "fusionctl_test", "*External*", "tests/service/fusionctl_test.cc")
    broken = ROOT / "build/acceptance_no_such_model.onnx"
    status = run(BIN / "fusionctl", "verify", broken, check=False).returncode
    rows.counted("fusionctl: missing file", status == 3, f"exit {status}", "3")
    with tempfile.TemporaryDirectory() as scratch:
        text = pathlib.Path(scratch) / "text.onnx"
        text.write_text("this is no model")
        status = run(BIN / "fusionctl", "verify", text, check=False).returncode
        rows.counted("fusionctl: not ONNX", status == 3, f"exit {status}", "3")
        address = f"unix:{scratch}/nobody"
        done = run(BIN / "fusionctl", "plan", generate(scratch, "mlp"), "--server", address, check=False)
        named = address in done.stderr
        rows.counted("fusionctl: no service", done.returncode == 4 and named,
                     f"exit {done.returncode}, address {'named' if named else 'missing'}", "4, address named")


def service_timing_rows(rows, work):
    model = generate(work, "bert_layer")
    cold_plan, cold_compile = [], []
    for _ in range(5):
        with Daemon(work) as daemon:
            ctl("plan", model, "--server", daemon.address, "--no-compile")
            cold_plan.append(daemon.calls(1)[-1]["ms"])
        with Daemon(work, workers=2) as daemon:
            ctl("plan", model, "--server", daemon.address)
            cold_compile.append(daemon.calls(1)[-1]["ms"])
    with Daemon(work) as daemon:
        for _ in range(60):
            ctl("plan", model, "--server", daemon.address)
        warm = [call["ms"] for call in daemon.calls(60) if call["cache"] == "memory"]
    for row, values, bar in (("warm PlanFusion, server side", warm, 1), ("cold plan without compile", cold_plan, 50),
                             ("cold with compile and check, 2 workers", cold_compile, 5000)):
        low, high = interval(values)
        median = statistics.median(values)
        rows.timed(row, median < bar, f"{median:.3g} ms [{low:.3g}, {high:.3g}], n={len(values)}", f"< {bar} ms")


def latency_rows(rows, work):
    for name, arguments in MODELS.items():
        model = generate(work, name, *arguments)
        for threads in sorted({1, os.cpu_count() or 1}):
            _, report = ctl("bench", model, "--threads", threads, "--seconds", 2)
            ratio = report["ratio"]
            figure = (f"{report['fused']['latency_us']['median']:.0f} us / "
                      f"{report['op_by_op']['latency_us']['median']:.0f} us = {ratio['median']:.3f} "
                      f"[{ratio['low95']:.3f}, {ratio['high95']:.3f}]")
            rows.timed(f"{name}, {threads} thread(s): fused / op by op", ratio["high95"] <= 1.02, figure,
                       "upper bound <= 1.02")


def peer_rows(rows, work):
    python = contender.peer_python()
    row = "median / onnxruntime, 1 thread"
    if python is None:
        rows.add("UNMEASURED", row, "onnxruntime cannot be installed here", "<= 2")
        return
    for name, arguments in MODELS.items():
        model = generate(work, name, *arguments)
        ours, theirs = [], []
        with Daemon(work) as daemon, contender.ours(daemon.address, model, 1) as mine, \
                contender.onnxruntime(python, model, 1) as peer:
            for _ in range(9):
                ours.append(statistics.median(mine.burst(15)))
                theirs.append(statistics.median(peer.burst(15)))
        ratios = [a / b for a, b in zip(ours, theirs)]
        low, high = interval(ratios)
        median = statistics.median(ratios)
        rows.timed(f"{name}: {row}", median <= 2,
                   f"{statistics.median(ours):.0f} us / {statistics.median(theirs):.0f} us = {median:.2f} "
                   f"[{low:.2f}, {high:.2f}]", "<= 2")


def measure(rows, work, options):
    rows.section(verify_rows, work)
    rows.section(plan_rows, work)
    rows.section(cache_rows, work)
    rows.section(bad_input_rows)
    if options.quick:
        return
    rows.section(service_timing_rows, work)
    rows.section(latency_rows, work)
    rows.section(peer_rows, work)
    rows.add("UNMEASURED", "bare Debian 12, both README commands", "tests/bare.sh measures them", "10 and 20 minutes")


if __name__ == "__main__":
    sys.exit(common.main("main job", "main_job", measure))
