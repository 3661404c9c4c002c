"""Rows of tests/acceptance/main_job.sh. Standard library only; onnxruntime is asked in a venv of its own."""

import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build/release/bin"
PEERS = ROOT / "build/peers"
ORT_VERSION = "1.31.1"

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
# Run by the Python that has onnxruntime, with a model as its argument: for each number on stdin the median of so many
# runs in microseconds. Inputs that are not floats are ones, which every model takes as indices.
ORT_SCRIPT = r"""
import json, sys, time
import numpy as np
import onnxruntime as ort

options = ort.SessionOptions()
options.intra_op_num_threads = 1
options.inter_op_num_threads = 1
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
options.log_severity_level = 3
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
random = np.random.default_rng(1)
feeds = {}
for i in session.get_inputs():
    if "float" in i.type:
        feeds[i.name] = random.standard_normal(i.shape, dtype=np.float32)
    elif "bool" in i.type:
        feeds[i.name] = np.ones(i.shape, dtype=bool)
    else:
        feeds[i.name] = np.ones(i.shape, dtype=np.int64 if "64" in i.type else np.int32)
for _ in range(3):
    session.run(None, feeds)
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        start = time.perf_counter()
        session.run(None, feeds)
        times.append((time.perf_counter() - start) * 1e6)
    print(json.dumps(sorted(times)[len(times) // 2]), flush=True)
"""


class Rows:
    def __init__(self):
        self.lines = []
        self.failed = False

    def add(self, verdict, row, figure, bar):
        line = f"{verdict:<10} {row:<58} {figure:<66} {bar}"
        print(line, flush=True)
        self.lines.append(line)
        self.failed |= verdict == "FAIL"

    def counted(self, row, ok, figure, bar):
        self.add("PASS" if ok else "FAIL", row, figure, bar)

    def timed(self, row, ok, figure, bar):
        self.add("PASS" if ok else "SHORT", row, figure, bar)


def run(*argv, check=True, timeout=600):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=timeout)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, argv))}: exit {done.returncode}: {done.stderr.strip()}")
    return done


def ctl(*argv, check=True):
    """fusionctl with --json: (exit status, object)."""
    done = run(BIN / "fusionctl", *argv, "--json", check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"fusionctl {' '.join(map(str, argv))}: exit {done.returncode}: {done.stderr.strip()}")
    return done.returncode, json.loads(done.stdout)


class Daemon:
    """A fusiond on a private socket, with its log."""

    def __init__(self, work, store=None, workers=None):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="fusiond.", dir="/tmp"))
        self.address = f"unix:{self.dir}/socket"
        self.log_path = pathlib.Path(work) / f"{self.dir.name}.log"
        argv = [BIN / "fusiond", "--listen", self.address, "--drain-seconds", "0"]
        argv += ["--store", store] if store else []
        argv += ["--workers", workers] if workers else []
        self.log = open(self.log_path, "w")
        self.process = subprocess.Popen([str(a) for a in argv], stderr=self.log)
        end = time.monotonic() + 60
        while run(BIN / "fusionctl", "status", "--server", self.address, check=False).returncode != 0:
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError(f"fusiond did not start: {self.log_path.read_text()[-500:]}")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def calls(self, count):
        """The server's own account of its first `count` PlanFusion calls, in order."""
        end = time.monotonic() + 30
        while True:  # a call is logged after it is answered
            found = []
            for line in self.log_path.read_text().split("\n")[:-1]:
                event = json.loads(line)
                if event.get("event") == "rpc" and event.get("method") == "PlanFusion":
                    found.append(event)
            if len(found) >= count or time.monotonic() > end:
                return found[:count]
            time.sleep(0.01)


def interval(values, statistic=statistics.median, rounds=2000):
    """Bootstrap 95 % interval of a statistic."""
    chance = random.Random(1)
    got = sorted(statistic(chance.choices(values, k=len(values))) for _ in range(rounds))
    return got[int(0.025 * rounds)], got[int(0.975 * rounds)]


def generate(work, name, *arguments, file=None):
    path = pathlib.Path(work) / (file or f"{name}.onnx")
    run(BIN / "fusion-modelgen", name, *arguments, "--out", path)
    return path


def verify_rows(rows, work, server):
    for name, arguments in MODELS.items():
        model = generate(work, name, *arguments)
        status, report = ctl("verify", model, "--server", server, check=False)
        if "outputs" not in report:
            rows.counted(f"verify {name}", False, report["error"]["message"][:120], "outside 0, fallbacks 0")
            continue
        outside = sum(o["outside"] for o in report["outputs"])
        worst = max(o["max_rel"] for o in report["outputs"])
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


def test_rows(rows, row, program, which, bar):
    """One row for each test of a test program that drives the real service."""
    done = run(BIN / program, f"--gtest_filter={which}", check=False)
    seen = 0
    for line in done.stdout.splitlines():
        if line.startswith("[       OK ]") or (line.startswith("[  FAILED  ]") and " ms)" in line):
            name = line.split("]")[1].split("(")[0].strip().split(".")[-1]
            rows.counted(f"{row}: {name}", "OK" in line[:12], "code and message as expected, the service lives on", bar)
            seen += 1
    if done.returncode != 0 or seen == 0:
        rows.counted(row, False, f"{program} {which}: exit {done.returncode}, {seen} tests", "0")


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


def run_pairs(model, threads):
    """Fused and op by op in turn: 60 pairs, and of a small model as many as take about two seconds."""
    _, report = ctl("run", model, "--threads", threads, "--repeat", 60)
    pair_us = sum(report[plan]["latency_us"]["median"] for plan in ("fused", "op_by_op"))
    pairs = min(int(2e6 / pair_us), 5000)
    return report if pairs < 120 else ctl("run", model, "--threads", threads, "--repeat", pairs)[1]


def latency_rows(rows, work):
    for name, arguments in MODELS.items():
        model = generate(work, name, *arguments)
        for threads in sorted({1, os.cpu_count() or 1}):
            report = run_pairs(model, threads)
            ratio = report["ratio"]
            figure = (f"{report['fused']['latency_us']['median']:.0f} us / "
                      f"{report['op_by_op']['latency_us']['median']:.0f} us = {ratio['median']:.3f} "
                      f"[{ratio['low95']:.3f}, {ratio['high95']:.3f}]")
            rows.timed(f"{name}, {threads} thread(s): fused / op by op", ratio["high95"] <= 1.02, figure,
                       "upper bound <= 1.02")


def peer_python():
    """A Python with onnxruntime, or None where PyPI cannot be reached."""
    python = PEERS / "bin/python"
    if python.exists() and run(python, "-c", "import onnxruntime", check=False).returncode == 0:
        return python
    made = run(sys.executable, "-m", "venv", PEERS, check=False)
    if made.returncode == 0:
        run(PEERS / "bin/pip", "install", "-q", f"onnxruntime=={ORT_VERSION}", "numpy<3", check=False)
    if python.exists() and run(python, "-c", "import onnxruntime", check=False).returncode == 0:
        return python
    return None


def peer_rows(rows, work):
    python = peer_python()
    row = "median / onnxruntime, 1 thread"
    if python is None:
        rows.add("UNMEASURED", row, "onnxruntime cannot be installed here", "<= 2")
        return
    for name, arguments in MODELS.items():
        model = generate(work, name, *arguments)
        peer = subprocess.Popen([str(python), "-c", ORT_SCRIPT, str(model)], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)
        ours, theirs = [], []
        with Daemon(work) as daemon:
            for _ in range(9):
                _, report = ctl("run", model, "--server", daemon.address, "--threads", 1, "--repeat", 15)
                ours.append(report["fused"]["latency_us"]["median"])
                peer.stdin.write("15\n")
                peer.stdin.flush()
                theirs.append(json.loads(peer.stdout.readline()))
        peer.stdin.close()
        peer.wait()
        ratios = [a / b for a, b in zip(ours, theirs)]
        low, high = interval(ratios)
        median = statistics.median(ratios)
        rows.timed(f"{name}: {row}", median <= 2,
                   f"{statistics.median(ours):.0f} us / {statistics.median(theirs):.0f} us = {median:.2f} "
                   f"[{low:.2f}, {high:.2f}]", "<= 2")


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                 platform.processor())
    commit = run("git", "-C", ROOT, "rev-parse", "--short", "HEAD", check=False).stdout.strip() or "unknown"
    return model, commit


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="counted and correctness rows only")
    parser.add_argument("--keep", action="store_true", help="keep the rows in tests/bench/results/")
    options = parser.parse_args()
    cpu, commit = machine()
    today = datetime.date.today().isoformat()
    header = f"# main job, {today}, {cpu}, {os.cpu_count()} cores, commit {commit}"
    print(header)
    rows = Rows()
    with tempfile.TemporaryDirectory(prefix="acceptance.") as work:
        with Daemon(work) as daemon:
            verify_rows(rows, work, daemon.address)
        plan_rows(rows, work)
        cache_rows(rows, work)
        bad_input_rows(rows)
        if not options.quick:
            service_timing_rows(rows, work)
            latency_rows(rows, work)
            peer_rows(rows, work)
            rows.add("UNMEASURED", "bare Debian 12, both README commands", "tests/bare.sh measures them",
                     "10 and 20 minutes")
    if options.keep:
        results = ROOT / "tests/bench/results"
        results.mkdir(parents=True, exist_ok=True)
        (results / f"main_job-{today}-{commit}.txt").write_text("\n".join([header, *rows.lines]) + "\n")
    return 1 if rows.failed else 0


if __name__ == "__main__":
    sys.exit(main())
