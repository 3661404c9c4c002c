"""What acceptance scripts share: rows, programs of a release build, a fusiond of their own. Standard library only."""

import argparse
import concurrent.futures
import datetime
import fnmatch
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
import traceback
from xml.etree import ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build/release/bin"
RESULTS = ROOT / "tests/bench/results"
# What gtest says of every test; further keys are what the test recorded.
GTEST_KEYS = {"name", "value_param", "type_param", "file", "line", "status", "result", "timestamp", "time", "classname",
              "failures"}


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

    def section(self, measure, *arguments):
        """measure(self, *arguments). What goes wrong in it is a FAIL row of its own; the rows after it are still measured."""
        try:
            measure(self, *arguments)
        except Exception as error:
            traceback.print_exc()
            self.counted(measure.__name__.replace("_", " "), False, f"{type(error).__name__}: {one_line(error)[:120]}",
                         "is measured to its end")


def one_line(value):
    return " ".join(str(value).split())


def run(*argv, check=True, timeout=600, environment=None):
    """`environment`: variables beside those of this process."""
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(environment or {})})
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, argv))}: exit {done.returncode}: {done.stderr.strip()}")
    return done


def ctl(*argv, check=True):
    """fusionctl with --json: (exit status, object)."""
    done = run(BIN / "fusionctl", *argv, "--json", check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"fusionctl {' '.join(map(str, argv))}: exit {done.returncode}: {done.stderr.strip()}")
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        said = one_line(done.stderr)[-200:] or "nothing"
        raise RuntimeError(f"fusionctl {argv[0]}: exit {done.returncode}, no JSON; it said: {said}") from None


class Daemon:
    """A fusiond on a private socket, with its log."""

    def __init__(self, work, store=None, workers=None, more=()):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="fusiond.", dir="/tmp"))
        self.address = f"unix:{self.dir}/socket"
        self.log_path = pathlib.Path(work) / f"{self.dir.name}.log"
        argv = [BIN / "fusiond", "--listen", self.address, "--drain-seconds", "0"]
        argv += ["--store", store] if store else []
        argv += ["--workers", workers] if workers else []
        argv += more
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


def matches(test, which):
    """Whether --gtest_filter=`which` selects a test."""
    name = f"{test['classname']}.{test['name']}"
    wanted, _, unwanted = which.partition("-")
    return (any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted.split(":")) and
            not any(fnmatch.fnmatchcase(name, pattern) for pattern in unwanted.split(":")))


def known_tests(program, which):
    """Those tests of a program that ctest ran in this run of tests/run.sh; none elsewhere, or where ctest ran an older program."""
    if "FUSION_TEST_RESULTS" not in os.environ:
        return []
    built = (BIN / program).stat().st_mtime
    paths = [path for path in sorted((pathlib.Path(os.environ["FUSION_TEST_RESULTS"]) / program).glob("*.json"))
             if path.stat().st_mtime > built]
    suites = [suite for path in paths for suite in json.loads(path.read_text())["testsuites"]]
    tests = [test for suite in suites for test in suite["testsuite"] if test.get("status") == "RUN"]
    return [test for test in tests if matches(test, which)]


def run_tests(program, which, timeout=3600, environment=None, at_once=1):
    """Those tests of a program that ran, each with what it recorded; the exit status of the program, that of the worst of
    `at_once` processes that share the tests. `at_once` is for tests of which none needs the machine alone. What ctest has just
    run as it would be run here (`environment` is empty) is not run again."""
    known = [] if environment else known_tests(program, which)
    if known:
        return known, int(any("failures" in test for test in known))

    def shard(index, path):
        return run(BIN / program, f"--gtest_filter={which}", f"--gtest_output=json:{path}", check=False, timeout=timeout,
                   environment={**(environment or {}), "GTEST_TOTAL_SHARDS": str(at_once), "GTEST_SHARD_INDEX": str(index)})

    with tempfile.TemporaryDirectory(prefix="rows.") as work, concurrent.futures.ThreadPoolExecutor(at_once) as threads:
        paths = [pathlib.Path(work) / f"{index}.json" for index in range(at_once)]
        shards = list(threads.map(shard, range(at_once), paths))
        suites = [suite for path in paths if path.exists() for suite in json.loads(path.read_text())["testsuites"]]
    tests = [test for suite in suites for test in suite["testsuite"] if test.get("status") == "RUN"]
    return tests, max((done.returncode for done in shards), key=abs)


def ctest_row(rows, row, which, bar):
    """One row for the tests of ctest whose name contains `which`: those that ran in this run of tests/run.sh, else they run now."""
    with tempfile.TemporaryDirectory(prefix="ctest.") as work:
        results = pathlib.Path(os.environ.get("FUSION_TEST_RESULTS", work)) / "ctest.xml"
        if not results.exists():
            run("ctest", "--preset", "release", "-R", which, "--output-junit", results, check=False, timeout=900)
        cases = [case for case in ElementTree.parse(results).iter("testcase") if which in case.get("name")]
    failed = sum(case.get("status") != "run" for case in cases)
    rows.counted(f"{row} (ctest -R {which})", bool(cases) and failed == 0, f"{len(cases)} tests, {failed} failed", bar)


def of_root(*names):
    """For `must_run` of test_rows: tests that root can do, as CI is; nothing for others."""
    return names if os.geteuid() == 0 else ()


def test_rows(rows, row, program, which, bar, timeout=600, environment=None, must_run=()):
    """One row for each test of a test program that drives the real service: its figure is what the test recorded.
    Gives the tests that ran. A test that was skipped is UNMEASURED, or FAIL if `must_run` has its name or its suite's."""
    tests, status = run_tests(program, which, timeout, environment)
    for test in tests:
        recorded = [f"{key} {value}" for key, value in test.items() if key not in GTEST_KEYS]
        figure = ", ".join(recorded) or "code and message as expected, the service lives on"
        skipped = test.get("result") == "SKIPPED"
        if skipped and test["name"] not in must_run and test["classname"] not in must_run:
            rows.add("UNMEASURED", f"{row}: {test['name']}", "skipped here", bar)
            continue
        if skipped:
            figure = "skipped here"
        elif "failures" in test:
            figure = one_line(test["failures"][0]["failure"])[:160]
        rows.counted(f"{row}: {test['name']}", not skipped and "failures" not in test, figure, bar)
    if not tests or (status != 0 and not any("failures" in test for test in tests)):
        rows.counted(row, False, f"{program} {which}: exit {status}, {len(tests)} tests", "each test passes")
    return tests


def machine():
    """The CPU, and the commit that was measured: "...-dirty" where the sources differ from it."""
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                 platform.processor())
    commit = run("git", "-C", ROOT, "describe", "--always", "--dirty", "--exclude=*", check=False).stdout.strip()
    return model, commit or "unknown"


def host_has(flag):
    """A word of the CPU's flags."""
    return any(flag in line.split() for line in open("/proc/cpuinfo") if line.startswith("flags"))


def compiler():
    """Of the kernels, as its version says."""
    done = run("g++", "--version", check=False)
    return done.stdout.split("\n")[0] or "no g++"


def main(title, name, measure, add_options=None):
    """Runs measure(rows, work, options), shows its rows and keeps them if asked; the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="counted and correctness rows only")
    parser.add_argument("--keep", action="store_true", help="keep the rows in tests/bench/results/")
    if add_options is not None:
        add_options(parser)
    options = parser.parse_args()
    cpu, commit = machine()
    today = datetime.date.today().isoformat()
    header = f"# {title}, {today}, {cpu}, {os.cpu_count()} cores, commit {commit}"
    places = [str(value) for name, value in vars(options).items() if name == "data"]  # of this machine
    partly = [word for word in sys.argv[1:] if word not in ("--keep", "--data", *places) and not word.startswith("--data=")]
    if partly:
        header += f", run with {' '.join(partly)}"
    print(header)
    rows = Rows()
    with tempfile.TemporaryDirectory(prefix="acceptance.") as work:
        rows.section(measure, pathlib.Path(work), options)
    if options.keep:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{name}-{today}-{commit}.txt").write_text("\n".join([header, *rows.lines]) + "\n")
    return 1 if rows.failed else 0
