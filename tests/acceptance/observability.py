"""Rows of the operators' pack (deploy/observability): a real Prometheus reads a real fusiond. Standard library only.

Three servers: one that is well and under load, one that is sick, and one whose store was damaged, which is then drained and killed.
Every query of every dashboard must find data of the first alone, and nothing may fire for it; of the others the alerts must fire.
"""

import concurrent.futures
import json
import math
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse

import common
from common import BIN, ROOT, generate

sys.path.insert(0, str(ROOT / "tests/observability"))

import observed  # noqa: E402
import pack  # noqa: E402

INTERVAL = "1s"
# What Grafana would fill in; the window covers the whole run.
WINDOW = "1m"
WAIT_S = 30
# More than any disk has.
NO_ROOM = 10**18
# Kernels of this compiler kill the worker that checks them, while there is a file "bomb" beside it.
COMPILER = """#!/bin/sh
case "$1" in --version|-print-prog-name=*) exec /usr/bin/g++ "$@";; esac
if [ -e "$(dirname "$0")/bomb" ]; then
  echo '__attribute__((constructor)) static void Bomb() { __builtin_trap(); }' >> kernel.cc
fi
exec /usr/bin/g++ "$@"
"""
SICK = {"FusionStoreNotWritable", "FusionCertificateExpires", "FusionKernelsQuarantined", "FusionCompilesDie", "FusionWorkersRestart",
        "FusionCallsRejected"}
DAMAGED = {"FusionStoreSetAside", "FusionNoMeasurements"}
DRAINED, KILLED = {"FusionNotReady"}, {"FusionDown"}
PROVOKED = SICK | DAMAGED | DRAINED | KILLED


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    """Scrapes these addresses each second, with the rules, whose alerts do not wait where they are to be provoked."""

    def __init__(self, work, targets):
        rules = work / "rules.yml"
        rules.write_text(without_waiting(pack.RULES.read_text()))
        config = {"global": {"scrape_interval": INTERVAL, "evaluation_interval": INTERVAL}, "rule_files": [str(rules)],
                  "scrape_configs": [{"job_name": "fusiond", "static_configs": [{"targets": targets}]}]}
        (work / "prometheus.json").write_text(json.dumps(config))  # which is YAML too
        self.address = f"127.0.0.1:{free_port()}"
        self.log = work / "prometheus.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={work / 'prometheus.json'}", f"--storage.tsdb.path={work / 'tsdb'}",
                 f"--web.listen-address={self.address}"], stdout=log, stderr=log)

    def ask(self, path, **parameters):
        if self.process.poll() is not None:
            raise RuntimeError(f"prometheus ended: {self.log.read_text()[-500:]}")
        try:
            return json.loads(observed.get(self.address, f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}"))["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None  # it is starting
            raise RuntimeError(f"{path} {parameters}: {error.read().decode()[:300]}") from None
        except urllib.error.URLError:
            return None  # it does not listen yet

    def values(self, query):
        """Of its series, without NaN."""
        data = self.ask("query", query=query)
        values = [float(series["value"][1]) for series in data["result"]] if data else []
        return [value for value in values if not math.isnan(value)]

    def firing(self):
        """{(alert, instance): annotations}"""
        data = self.ask("alerts")
        return {(alert["labels"]["alertname"], alert["labels"]["instance"]): alert["annotations"]
                for alert in (data["alerts"] if data else []) if alert["state"] == "firing"}

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        self.process.wait(timeout=60)


def without_waiting(text):
    """The rules; the alerts of PROVOKED fire at once."""
    alert = ""
    lines = []
    for line in text.splitlines():
        start = re.match(r"\s*- alert: (\w+)", line)
        alert = start[1] if start else alert
        lines.append(re.sub(r"^(\s+for: ).*", r"\g<1>0s", line) if alert in PROVOKED else line)
    return "\n".join(lines) + "\n"


def until(condition, seconds=WAIT_S):
    """What `condition` gives, once it holds or the time is over."""
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.2)
    return found


def damaged_store(work):
    store = work / "damaged"
    with observed.Observed(BIN, ["--store", store]) as first:
        first.stop()
    (store / "db/CURRENT").write_text("MANIFEST-999999\n")
    return store


def sick_flags(work):
    directory = work / "sick"
    directory.mkdir(mode=0o700)
    compiler = directory / "own-g++"
    compiler.write_text(COMPILER)
    compiler.chmod(0o700)
    return [*observed.certificate(directory, 5), "--store", directory / "store", "--store-min-free", NO_ROOM, "--allow-compiler",
            compiler, "--sandbox", "none", "--workers", 1, "--tenant-limit", "*:rate=0.5,burst=6"]


def load(well, models):
    """What callers of a server that is well do."""
    for model in models:
        well.must("plan", model)
        well.must("plan", model)
    well.must("bench", models[0], "--pairs", 3)
    well.must("report", models[0])
    well.must("report", "--accuracy")
    well.must("store", "stats")


def trouble(sick, work, model):
    """Crashes first; then more calls than the quota allows."""
    (work / "sick/bomb").write_text("")
    sick.ctl("plan", model)
    for _ in range(12):
        sick.ctl("list", "--deadline", 0.2)


def without_data(prometheus, queries, meanwhile):
    """Those of the queries that find nothing, or only NaN, until the time is over; `meanwhile` is called before each try."""
    left = dict(queries)

    def all_found():
        meanwhile()
        for key in [key for key, query in left.items() if prometheus.values(query)]:
            del left[key]
        return not left

    until(all_found)
    return left


def dashboard_rows(rows, prometheus, well, model):
    """Every query of every dashboard, with the data of one server."""
    instance = re.escape(well.admin).replace("\\", "\\\\")
    for name, dashboard in pack.dashboards().items():
        queries = {(panel["title"], target["legendFormat"]): target["expr"].replace("$__rate_interval", WINDOW).replace("$instance", instance)
                   for panel in pack.panels(dashboard) for target in panel["targets"]}
        left = without_data(prometheus, queries, lambda: well.must("plan", model))
        missing = ", ".join(f"{title} ({legend})" for title, legend in left)
        rows.counted(f"dashboard {name}: every query has data", not left, missing or f"{len(queries)} of {len(queries)} queries",
                     "all of them")


def alert_row(rows, prometheus, row, wanted, daemon):
    """The alerts `wanted` fire for a server, with texts in which nothing is left to be filled in."""
    def names():
        return {name for name, instance in prometheus.firing() if instance == daemon.admin}

    until(lambda: wanted <= names())
    missing = sorted(wanted - names())
    texts = [text for (name, _), annotations in prometheus.firing().items() if name in wanted for text in annotations.values()]
    bad = [text for text in texts if "{{" in text or "<no value>" in text or "error" in text]
    figure = f"missing: {', '.join(missing)}" if missing else f"text: {bad[0]}" if bad else f"{len(wanted)} of {len(wanted)}"
    rows.counted(f"alerts fire: {row}", not missing and not bad, figure, ", ".join(sorted(wanted)))


def live_rows(rows, work, options):
    models = [generate(work, name) for name in ("softmax", "bias_gelu", "mlp")]
    store = damaged_store(work)
    with observed.Observed(BIN, [*observed.certificate(work, 365), "--store", work / "store"]) as well, \
            observed.Observed(BIN, sick_flags(work)) as sick, \
            observed.Observed(BIN, ["--store", store], drain_seconds=600) as damaged, \
            Prometheus(work, [well.admin, sick.admin, damaged.admin]) as prometheus:
        seen = until(lambda: sum(prometheus.values("up{job='fusiond'}")) == 3)
        rows.counted("prometheus scrapes fusiond", bool(seen), "3 of 3 servers" if seen else prometheus.log.read_text()[-150:], "each")
        with concurrent.futures.ThreadPoolExecutor(3) as threads:
            done = [threads.submit(load, well, models), threads.submit(trouble, sick, work, models[1]),
                    threads.submit(damaged.must, "plan", models[0], "--plan-only")]
            for one in done:
                one.result()
        rows.section(dashboard_rows, prometheus, well, models[0])
        alert_row(rows, prometheus, "a full disk, crashes, a quota, a certificate", SICK, sick)
        alert_row(rows, prometheus, "a damaged store, no reports", DAMAGED, damaged)
        damaged.drain()
        alert_row(rows, prometheus, "a server that drains", DRAINED, damaged)
        damaged.end()
        alert_row(rows, prometheus, "a server that was killed", KILLED, damaged)
        wrong = sorted(name for name, instance in prometheus.firing() if instance == well.admin)
        rows.counted("no alert fires for a server that is well", not wrong, ", ".join(wrong) or "none", "none")


def observability(rows, work, options):
    """Dashboards, alerts and runbooks."""
    common.ctest_row(rows, "dashboards are what their tables say; runbooks", "observability/pack", "each alert, each dashboard")
    common.ctest_row(rows, "dashboards, rules and READMEs name real metrics", "observability/exported", "as a server exports them")
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        rows.add("UNMEASURED", "alerts on series; a real Prometheus", "package prometheus is not installed", "")
        return
    common.ctest_row(rows, "each alert on series that must fire, and must not", "observability/rules", "each alert")
    rows.section(live_rows, work, options)
