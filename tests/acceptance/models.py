"""Rows of tests/acceptance/models.sh. Standard library only."""

import collections
import os
import pathlib
import re
import sys

import buffers
import common
import export
import families
import loops
import memory
import optimised
from common import ROOT, run

# Of ONNX's tests: those over tensors whose outputs follow from their inputs.
ONNX_BAR = 0.99


def recorded(program, which, environment=None):
    """What tests of a program recorded, and whether all passed."""
    tests, status = common.run_tests(program, which, environment=environment, at_once=os.cpu_count() or 1)
    return [t for t in tests if t.get("result") != "SKIPPED"], status == 0


def left_by(tests):
    """How many models they left out, by reason."""
    left = collections.Counter()
    for key, value in (item for test in tests for item in test.items()):
        if key.startswith("left_"):
            count, _, reason = value.partition(": ")
            left[reason] += int(count)
    return left


def onnx_rows(rows):
    """ONNX's own tests through plans, generated kernels and the executor."""
    tests, good = recorded("kernels_onnx_test", "Part/*")
    took = sum(float(test["time"].removesuffix("s")) for test in tests)
    if not tests:
        rows.add("UNMEASURED", "ONNX's own tests through fused kernels", "package libonnx-testdata is not installed", "")
        return
    passed, scope, beside = (sum(int(t.get(key, 0)) for t in tests) for key in ("passed", "in_scope", "beside"))
    rows.counted("ONNX's own tests through fused kernels", good and passed >= ONNX_BAR * scope,
                 f"{passed} of {scope} = {100 * passed / scope:.1f} %, no wrong result; {beside} not over tensors",
                 f">= {100 * ONNX_BAR:.0f} %")
    rows.add("PASS", "how long they take, compilers included", f"{took:.0f} s of one core for {passed + beside} models", "is said")
    for reason, count in left_by(tests).most_common():
        print(f"           left {count}: {reason[:150]}", flush=True)


def shared_rows(rows, options):
    """Real exported graphs against the outputs that came with them."""
    root = pathlib.Path(options.data) / "models"
    if not root.exists():
        rows.add("UNMEASURED", "real exported graphs match their stored outputs", f"no {root}", "all of them")
        return
    elsewhere = {} if root == ROOT.parent / "shared/models" else {"FUSION_ONNX_GRAPHS": root}
    tests, good = recorded("kernels_onnx_test", "ExportedGraphs.*", elsewhere)
    passed, scope = (sum(int(t.get(key, 0)) for t in tests) for key in ("passed", "in_scope"))
    rows.counted("real exported graphs match their stored outputs", good and passed == scope and scope > 0,
                 f"{passed} of {scope}", "all of them")
    for reason in left_by(tests):
        print(f"           left: {reason[:150]}", flush=True)


def custom_rows(rows):
    """Ops that a request defines, and inputs of known values, through the real programs."""
    common.test_rows(rows, "custom ops", "fusionctl_test", "CustomOpsCommandTest.*", "through fusionctl and fusiond")


def strided_rows(rows):
    """Tensors that do not lie dense in the caller's memory, through the client library and fusionctl."""
    for which in ("StridedTest.*", "FusionctlStridedTest.*"):
        common.test_rows(rows, "bound strides", "fusionctl_test", which, "as dense ones, gaps untouched")


def fuzz_rows(rows, options):
    """What reads what strangers send: 60 seconds each, or all the executions that --nightly makes; findings of before in ctest."""
    if options.quick:
        common.ctest_row(rows, "fuzz: inputs that were found before", "fuzz/", "no finding")
        return
    done = run(ROOT / "tests/fuzz/run.sh", *(["--nightly"] if options.nightly else []), check=False, timeout=None)
    found = re.findall(r"^(PASS|FAIL) fuzz (\w+(?:, round \d+ of \d+)?): (.*)$", done.stdout, re.M)
    for verdict, name, figure in found:
        rows.counted(f"fuzz: {name}", verdict == "PASS", figure.split(", from ")[0], "no finding")
    if done.returncode != 0 or not found:
        rows.counted("fuzz: all targets", False, common.one_line(done.stderr or done.stdout)[-160:], "run to their end")
        print(done.stdout, flush=True)
    if not options.nightly:
        rows.add("UNMEASURED", "fuzz: 10 million executions each", "--nightly does them", "no finding")


def measure(rows, work, options):
    rows.section(onnx_rows)
    rows.section(shared_rows, options)
    rows.section(custom_rows)
    rows.section(memory.memory_rows, work, options)
    rows.section(buffers.buffer_rows, work, options)
    rows.section(loops.loop_rows, work, options)
    rows.section(strided_rows)
    rows.section(families.measure, work, options)
    rows.section(export.measure, work, options)
    rows.section(optimised.optimised_rows, work, options)
    rows.section(fuzz_rows, options)


def add_options(parser):
    parser.add_argument("--nightly", action="store_true", help="10 million executions of each fuzz target; hours")
    parser.add_argument("--data", default=ROOT.parent / "shared", help="directory with models/; default: ../shared")


if __name__ == "__main__":
    sys.exit(common.main("whole models", "models", measure, add_options))
