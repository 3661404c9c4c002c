"""Rows of tests/conformance/newest_onnx.sh. Standard library only; the newest onnx runs in a venv of its own, build/newest-onnx."""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "acceptance"))

import common
from common import BIN, ROOT, Daemon, run

VENV = ROOT / "build/newest-onnx"
WORKER = pathlib.Path(__file__).with_name("newest_onnx_worker.py")
# What may be refused: see newest_onnx_worker.py. Of what is random there is no right value to compare with.
ALLOWED = {"string", "sequence", "optional", "map", "sparse", "training", "image decoding", "random"}
RIGHT, WRONG, REFUSED = 0, 1, 3
LIMIT_S = 120


def newest_python():
    """A Python with the newest onnx that PyPI has, or the one that it got before; None if there is none."""
    python = VENV / "bin/python"
    if not python.exists() and run(sys.executable, "-m", "venv", VENV, check=False).returncode != 0:
        return None
    run(python, "-m", "pip", "install", "-q", "--upgrade", "--retries", "1", "onnx", "numpy", "ml-dtypes", check=False)
    return python if run(python, "-c", "import onnx", check=False).returncode == 0 else None


class Outcome:
    """What became of a test: `verdict` is right, wrong or refused; `fixed` are the inputs that it wants as constants."""

    def __init__(self, name, about):
        self.name, self.ops, self.beside = name, about["ops"], about["beside"]
        self.verdict, self.why, self.fixed = "right", "", []


def verify(case, data, about, fixed, server):
    """(exit status, the last line of what it said)"""
    names = {name: k for k, name in enumerate(about["inputs"])}
    words = [word for name in fixed for word in ("--fix", f"{name}={data / f'input_{names[name]}.pb'}")]
    try:
        done = subprocess.run([BIN / "fusionctl", "verify", case / "model.onnx", "--data", data, *words, "--rtol", str(about["rtol"]),
                               "--atol", str(about["atol"]), "--quiet", "--server", server],
                              capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return -1, f"no answer within {LIMIT_S} s"
    return done.returncode, common.one_line((done.stderr.strip() or done.stdout.strip()).split("\n")[-1])


def one_case(case, server):
    """Every data set, with as few inputs as constants as it takes."""
    about = json.loads((case / "case.json").read_text())
    outcome = Outcome(case.name, about)
    for data in sorted(case.glob("test_data_set_*")):
        status, why = verify(case, data, about, outcome.fixed, server)
        for fixed in about["retries"]:
            if status in (RIGHT, WRONG) or status < 0:
                break
            status, said = verify(case, data, about, fixed, server)
            if status in (RIGHT, WRONG) or status < 0:
                outcome.fixed, why = fixed, said
        # What is drawn has no right value: it has to run.
        if status == RIGHT or (status == WRONG and outcome.beside == "random"):
            continue
        # Signals, time-outs and a service that fails are no refusals.
        outcome.verdict = "refused" if status == REFUSED else "wrong"
        outcome.why = why
        break
    return outcome


def by_op(outcomes):
    """"Op 3, Other 1", the most frequent first."""
    count = collections.Counter(", ".join(outcome.ops) for outcome in outcomes)
    return "; ".join(f"{ops} {number}" for ops, number in count.most_common())


def report(rows, outcomes, version):
    groups = {verdict: [o for o in outcomes if o.verdict == verdict] for verdict in ("right", "wrong", "refused")}
    right, wrong, refused = (len(groups[verdict]) for verdict in ("right", "wrong", "refused"))
    fixed = sum(bool(outcome.fixed) for outcome in groups["right"])
    rows.counted(f"node tests of onnx {version}: none is wrong", wrong == 0,
                 f"{right} right, {fixed} of them with --fix; {wrong} wrong, {refused} refused", "0 wrong")
    for outcome in groups["wrong"]:
        print(f"           wrong {outcome.name}: {outcome.why[:200]}", flush=True)
    other = [outcome for outcome in groups["refused"] if outcome.beside not in ALLOWED]
    rows.counted(f"node tests of onnx {version}: refused", not other,
                 f"{refused - len(other)} for what they are about, {len(other)} others",
                 f"only {', '.join(sorted(ALLOWED))}")
    for kind in sorted(ALLOWED):
        those = [outcome for outcome in groups["refused"] if outcome.beside == kind]
        if those:
            print(f"           refused, {kind} {len(those)}: {by_op(those)}", flush=True)
    reasons = collections.defaultdict(list)
    for outcome in other:
        reasons[", ".join(outcome.ops), re.sub(r'"[^"]*"', '""', outcome.why)].append(outcome)
    for (ops, _), those in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"           refused {len(those)} {ops}: {those[0].name}: {those[0].why[:220]}", flush=True)


def newest_onnx_rows(rows, work, only=()):
    """`only`: texts of names of tests, or all."""
    python = newest_python()
    if python is None:
        rows.add("UNMEASURED", "node tests of the newest onnx: none is wrong", "PyPI cannot be reached", "0 wrong")
        return
    cases = pathlib.Path(work) / "newest-onnx"
    version = json.loads(run(python, "-B", WORKER, cases, timeout=1200).stdout)
    chosen = [case for case in sorted(cases.iterdir()) if not only or any(text in case.name for text in only)]
    with Daemon(work) as daemon, concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        outcomes = list(threads.map(lambda case: one_case(case, daemon.address), chosen))
        alive = daemon.process.poll() is None
    report(rows, outcomes, version)
    rows.counted(f"node tests of onnx {version}: the service lives on", alive, f"{len(chosen)} models", "it does")


def add_options(parser):
    parser.add_argument("--only", action="append", default=[], help="tests whose name contains this")


def measure(rows, work, options):
    newest_onnx_rows(rows, work, options.only)


if __name__ == "__main__":
    sys.exit(common.main("node tests of the newest onnx", "newest-onnx", measure, add_options))
