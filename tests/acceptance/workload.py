"""A mixed load on one fusiond for minutes, and what operators and users then see of it: rows of learning.sh, and tests/bench/workload.sh.

Three tenants load models of different sizes with one thread and two, run them with and without reports of latencies, tune some, and ask
for reports; some calls are refused. Each call is a client of its own. Meanwhile a real Prometheus reads the server. Standard library only.
"""

import collections
import concurrent.futures
import datetime
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

import common
from common import BIN, RESULTS, generate, one_line, run
from observability import Prometheus, dashboard_rows, observed, until

QUICK_S, FULL_S = 12, 120  # of load, unless --minutes says
CALLERS = 2
TENANTS = {"shop": "*", "search": "*", "batch": "rate=2,burst=3"}
# A report must show the sections of these transformers.
LAYERS = {"bert": ("bert_tiny", "--layers", 1, "--seq", 32), "llama": ("llama_small_decode",), "gpt2": ("gpt2_layer_decode",)}
SMALL = {"softmax": ("softmax",), "bias_gelu": ("bias_gelu",), "mlp": ("mlp",), "conv": ("conv1x1",)}
LARGE = {"bert_layer": ("bert_layer",), "resnet_block": ("conv_residual_relu",), "t5": ("t5_encoder",)}
# What may fire: the load makes calls that must be refused.
EXPECTED_ALERTS = {"FusionCallsRejected"}
OVERHEAD = 0.005
OVERHEAD_MODELS = {"softmax": (1, 2), "bert": (1, 2)}
COLUMNS = 100


class Served(observed.Observed):
    """A server whose callers need tokens; without a word on the tenant a call is an operator's."""

    def __init__(self, work, flags=()):
        self.tokens = {}
        entries = []
        for tenant in (*TENANTS, "operator"):
            # Reports of a tenant that is not trusted do not count for plans that tenants share.
            roles = ("plan", "trusted-report", "admin") if tenant == "operator" else ("plan", "trusted-report")
            path = work / f"{tenant}.token"
            entries.append(run(BIN / "fusionctl", "token", tenant, "--tenant", tenant, "--out", path,
                               *[word for role in roles for word in ("--role", role)]).stdout)
            self.tokens[tenant] = path.read_text().strip()
        access = work / "tokens"
        access.write_text("".join(entries))
        access.chmod(0o600)
        limits = [word for tenant, limit in TENANTS.items() if limit != "*" for word in ("--tenant-limit", f"{tenant}:{limit}")]
        super().__init__(BIN, ["--tokens", access, *limits, *flags])

    def ctl(self, *words, tenant="operator", timeout=300):
        token = {"FUSION_TOKEN": self.tokens.get(tenant, "wrong")}
        done = run(BIN / "fusionctl", *words, "--server", self.address, check=False, timeout=timeout, environment=token)
        return done.returncode, done.stdout + done.stderr


class Load:
    """Calls at random, the same for a seed; counts them by what they are and how they end."""

    def __init__(self, daemon, work, models, seconds):
        self.daemon, self.work, self.models = daemon, work, models
        self.end = time.monotonic() + seconds
        self.calls = collections.Counter()
        self.wrong = []
        self.broken = work / "broken.onnx"
        self.broken.write_bytes(b"no model")

    def call(self, kind, expected, *words, tenant):
        status, said = self.daemon.ctl(*words, "--quiet", tenant=tenant)
        self.calls[kind] += 1
        if tenant == "batch" and status == 4 and "calls a second" in said:
            self.calls["refused: quota"] += 1
        elif status not in expected:
            self.wrong.append(f"{kind}: exit {status}: {one_line(said)[-150:]}")

    def caller(self, seed):
        chance = random.Random(seed)
        while time.monotonic() < self.end:
            self.step(chance, seed)

    def step(self, chance, seed):
        tenant = chance.choice(list(TENANTS))
        model = chance.choice(list(self.models.values()))
        threads = chance.choice((1, 2))
        kind = chance.choices(("plan", "new size", "bench", "silent bench", "run", "tune", "look", "refused"), (4, 2, 4, 1, 2, 1, 2, 2))[0]
        if kind == "plan":
            self.call(kind, (0,), "plan", model, "--threads", threads, tenant=tenant)
        elif kind == "new size":
            other = generate(self.work, "softmax", "--rows", chance.randint(8, 4000), "--cols", 64, file=f"new{seed}.onnx")
            self.call(kind, (0,), "plan", other, "--threads", threads, tenant=tenant)
        elif kind in ("bench", "silent bench"):
            quiet = ("--no-report",) if kind != "bench" else ()
            self.call(kind, (0,), "bench", model, "--threads", threads, "--seconds", 0.3, "--warmup", 2, *quiet, tenant=tenant)
        elif kind == "run":
            self.call(kind, (0,), "run", model, "--threads", threads, "--repeat", 5, tenant=tenant)
        elif kind == "tune":
            self.call(kind, (0,), "tune", self.models["softmax"], "--threads", threads, "--seconds", 2, tenant=tenant)
        elif kind == "look":
            words = chance.choice((("report",), ("report", "--accuracy"), ("list",), ("explain", model), ("capabilities",)))
            self.call(kind, (0,), *words, tenant=tenant)
        else:
            words, status, who = chance.choice(((("plan", self.broken), 3, tenant), (("report", "0" * 64), 3, tenant),
                                                (("plan", model), 4, "nobody"), (("store", "stats"), 4, tenant)))
            self.call("refused", (status,), *words, tenant=who)

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(CALLERS) as threads:
            for done in [threads.submit(self.caller, seed) for seed in range(CALLERS)]:
                done.result()


def report_rows(rows, daemon, work, models):
    """fusionctl report in all of its formats, of everything that was reported."""
    for name in LAYERS:  # so that each is there, however short the load was
        daemon.must("bench", models[name], "--threads", 1, "--seconds", 0.5)
    report = json.loads(daemon.must("report", "--json"))
    fused = [plan for plan in report["plans"] if plan["fusion"] == "fused"]
    compared = [plan for plan in fused if plan["speedup"] and plan["speedup"]["measured"]]
    runs = sum(plan["runs"]["calls"] for plan in report["plans"])
    rows.counted("report: fused plans with measured runs, fused and op by op", len(compared) >= len(LAYERS),
                 f"{len(compared)} of {len(fused)} fused plans, {runs} runs", f">= {len(LAYERS)}")
    for name in LAYERS:
        parts = [plan for plan in compared if plan["model"] == name and plan["sections"]]
        seen = {part for plan in parts for row in plan["sections"] for part in row["sections"] if row["measured_us"]}
        figure = "; ".join(f"{'+'.join(row['sections']) or 'other'} {row['op_by_op_kernels']}->{row['fused_kernels']} "
                           f"{row['measured_us']:.0f} us {row['speedup']['factor']:.2f} x"
                           for row in (parts[0]["sections"] if parts else []) if row["measured_us"])
        rows.counted(f"report: parts of {name}, measured", {"QKV", "attention", "FFN"} <= seen, figure[:200], "QKV, attention, FFN")
    text = daemon.must("report")
    longest = max(len(line) for line in text.splitlines())
    rows.counted("report: text fits", longest <= COLUMNS, f"{len(text.splitlines())} lines, at most {longest} columns", f"<= {COLUMNS}")
    page, markdown = work / "report.html", work / "report.md"
    daemon.must("report", "--html", page, "--markdown", markdown)
    tables = sum(line.startswith("| :---") for line in markdown.read_text().splitlines())
    rows.counted("report: Markdown and page", tables >= len(fused) and page.read_text().endswith("</html>\n"),
                 f"{tables} tables, {page.stat().st_size >> 10} KiB", "a table for each fused plan")
    errors = sorted(plan["accuracy"]["median_abs_ln"] for plan in fused if plan["accuracy"])
    rows.add("PASS", "report: |ln(measured / estimated)| of kernels, by plan", f"median {errors[len(errors) // 2]:.3f}, "
             f"largest {errors[-1]:.3f}, under load", "(not judged: callers share the cores)")


def picture_rows(rows, work, pictures):
    """The page of the report, as a browser shows it."""
    browser = shutil.which("chromium")
    if browser is None:
        rows.add("UNMEASURED", "report: the page in a browser", "package chromium is not installed", "")
        return
    drawn = []
    for width, height in ((1280, 1600), (390, 1600)):
        for name, scheme in (("light", 1), ("dark", 0)):
            path = pictures / f"report-{width}-{name}.png"
            subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={work}/chromium",
                            f"--blink-settings=preferredColorScheme={scheme}", f"--window-size={width},{height}", f"--screenshot={path}",
                            f"file://{work}/report.html"], check=False, capture_output=True, timeout=120)
            drawn.append(path.exists() and path.stat().st_size > 10_000)
    rows.counted("report: the page in a browser", all(drawn), f"{sum(drawn)} pictures of 1280 and 390 px, light and dark", "4")


def alert_rows(rows, prometheus, daemon):
    firing = sorted({name for name, instance in prometheus.firing() if instance == daemon.admin})
    wrong = [name for name in firing if name not in EXPECTED_ALERTS]
    rows.counted("alerts under load", not wrong, ", ".join(firing) or "none", f"none but {', '.join(sorted(EXPECTED_ALERTS))}")


def overhead_rows(rows, work, models, seconds):
    """Pairs of runs with and without reports, on a server that has nothing else to do."""
    with common.Daemon(work, store=work / "overhead") as daemon:
        for name, threads in ((name, threads) for name, all_of in OVERHEAD_MODELS.items() for threads in all_of):
            said = run(BIN / "report_overhead", daemon.address, models[name], threads, seconds, timeout=seconds + 120).stdout
            found = json.loads(said)
            rows.timed(f"overhead of reports: {name}, threads {threads}", found["median"] <= OVERHEAD,
                       f"{found['median']:+.2%} ({found['low95']:+.2%} .. {found['high95']:+.2%}), {found['pairs']} pairs of "
                       f"{found['run_us']:.0f} us", f"<= {OVERHEAD:.1%}")


def live_rows(rows, work, options, seconds, models):
    prometheus_there = shutil.which("prometheus") is not None
    flags = [*observed.certificate(work, 365), "--store", work / "store"]
    with Served(work, flags) as daemon:
        prometheus = Prometheus(work, [daemon.admin]) if prometheus_there else None
        try:
            load = Load(daemon, work, models, seconds)
            load.run()
            figure = ", ".join(f"{kind} {count}" for kind, count in sorted(load.calls.items()))
            rows.counted(f"{seconds:.0f} s of load: calls that end otherwise than expected", not load.wrong,
                         load.wrong[0] if load.wrong else f"0 of {sum(load.calls.values())}: {figure}", "0")
            rows.section(report_rows, daemon, work, models)
            if prometheus is None:
                rows.add("UNMEASURED", "dashboards and alerts under load", "package prometheus is not installed", "")
            else:
                until(lambda: prometheus.values("up{job='fusiond'}"))
                rows.section(dashboard_rows, prometheus, daemon, models["softmax"])
                rows.section(alert_rows, prometheus, daemon)
        finally:
            if prometheus is not None:
                prometheus.__exit__()


def workload(rows, work, options):
    minutes = getattr(options, "minutes", None)
    seconds = minutes * 60 if minutes else QUICK_S if options.quick else FULL_S
    kinds = {**LAYERS, **SMALL, **({} if options.quick else LARGE)}
    models = {name: generate(work, *words, file=f"{name}.onnx") for name, words in kinds.items()}
    rows.section(live_rows, work, options, seconds, models)
    pictures = pathlib.Path(getattr(options, "pictures", None) or work)
    pictures.mkdir(parents=True, exist_ok=True)
    if (work / "report.html").exists():
        rows.section(picture_rows, work, pictures)
        if options.keep:
            RESULTS.mkdir(parents=True, exist_ok=True)
            name = f"workload-{datetime.date.today().isoformat()}-{common.machine()[1]}-report.md"
            shutil.copy(work / "report.md", RESULTS / name)
    if not options.quick:
        rows.section(overhead_rows, work, models, max(10, int(seconds / 10)))


def add_options(parser):
    parser.add_argument("--minutes", type=float, help=f"of load; default: {FULL_S / 60:g}")
    parser.add_argument("--pictures", help="write pictures of the report's page to this folder")


if __name__ == "__main__":
    os.chdir(common.ROOT)
    sys.exit(common.main("a mixed load", "workload", workload, add_options))
