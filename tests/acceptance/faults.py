"""Rows of tests/acceptance/faults.sh. Standard library only; onnxruntime and the newest onnx run in venvs of their own."""

import json
import pathlib
import random
import re
import statistics
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / directory) for directory in ("bench/peers", "conformance")]

import beside
import common
import contender
import newest_onnx
import pypi
from common import BIN, ROOT, Daemon, ctl, generate, run

HERE = pathlib.Path(__file__).parent
# Random models of length arithmetic: as programs, as kernels, and values of the dim for each of these.
PROGRAMS, KERNELS, QUICK_KERNELS, VALUES = 2000, 150, 15, 6
SLOW_CONNECTIONS, HEALTH_MS = 300, 100
FIRST_ANSWER_S = 1.5
# A run beside onnxruntime's, and that of a scan.
RUNS, SCAN_RUNS = 3.0, 1.5
FIRST_ANSWERS, SECONDS = 5, 10
BOMBS, QUICK_BOMBS = 200, 20
# Tests of memory that nobody may read, by program.
REACH = {"fusionctl_test": "FamilyTest.AKernelServesTheRange*:FamilyTest.APlantedKernel*",
         "runtime_test": "Executor.AKernelMadeForLongerDims*:Executor.AKernelThatTakesDims*:Executor.AKernelOfStaticShape*"}


REFUSALS = {"FAILED_PRECONDITION", "INVALID_ARGUMENT", "UNIMPLEMENTED"}


def way_out(message):
    """Whether a refusal names a node, or says that it is about the inputs, and a dim of the model, and what helps."""
    return ("node \"" in message or "of an input" in message) and "dim" in message and "--bind" in message


def refusal(case, server):
    """(whether it is about a range of lengths, the whole message of the first data set that is refused)"""
    spec = json.loads((case / "case.json").read_text())
    for data in sorted(case.glob("test_data_set_*")):
        words = [word for one in spec["ranges"] for word in ("--range", one)]
        status, said = ctl("verify", case / "model.onnx", "--data", data, *words, *spec["options"], "--server", server,
                           check=False)
        if status not in (0, 1):
            return bool(spec["ranges"]), common.one_line(said["error"]["message"])
    return bool(spec["ranges"]), "not refused again"


def shared_cases(rows, work, options):
    """Small models that found faults, with data."""
    cases = pathlib.Path(options.data) / "cases"
    if not (cases / "run.py").exists():
        rows.add("UNMEASURED", "shared cases: none is wrong", f"no {cases}", "0 wrong")
        return
    done = run(sys.executable, "-B", cases / "run.py", BIN, cases, check=False, timeout=3600)
    found = re.findall(r"^(ok|REFUSED|WRONG)\s+(\S+)\s+[\d.]+ s  (.*)$", done.stdout, re.M)
    names = {verdict: [name for v, name, _ in found if v == verdict] for verdict in ("ok", "REFUSED", "WRONG")}
    known = len(list(cases.glob("*/case.json")))
    rows.counted("shared cases: none is wrong", not names["WRONG"] and len(found) == known,
                 f"{len(names['ok'])} as expected, {len(names['REFUSED'])} refused, {len(names['WRONG'])} wrong of {known}",
                 "0 wrong, all tried")
    for _, name, why in (one for one in found if one[0] == "WRONG"):
        print(f"           wrong {name}: {common.one_line(why)}", flush=True)
    with Daemon(work) as daemon:
        refused = {name: refusal(cases / name, daemon.address) for name in names["REFUSED"]}
    ranges = [name for name, (is_range, _) in refused.items() if is_range]
    silent = [name for name in ranges if not way_out(refused[name][1])]
    rows.counted("shared cases: a refused range has node, dim and way out", not silent,
                 ", ".join(silent) or f"{len(ranges)} of {len(ranges)}", "each")
    others = [name for name in refused if name not in ranges]
    rows.counted("shared cases: nothing of known shape is refused", not others, ", ".join(others) or "none", "none")
    for name, (_, message) in refused.items():
        print(f"           left, refused {name}: {message[:300]}", flush=True)


def family_program_rows(rows, options):
    variables = {} if options.quick else {"FUSION_RANDOM_MODELS": str(PROGRAMS)}
    tests, status = common.run_tests("families_right_or_refused_test", "*", environment=variables)
    right, refused = (sum(int(test.get(key, 0)) for test in tests) for key in ("accepted", "refused"))
    failed = [common.one_line(f["failure"])[:120] for test in tests for f in test.get("failures", [])]
    rows.counted(f"{right + refused} random models of lengths: right or refused", status == 0 and right + refused > 0 and not failed,
                 f"{right} right at {VALUES} values each, {refused} refused" + (f"; {failed[0]}" if failed else ""), "0 wrong")


def one_length(pick):
    """Ranges of (batch, seq) for a model "lengths"."""
    least = pick.randint(1, 8)
    return (1, 2), (least, least + pick.randint(1, 12))


def two_lengths(pick):
    """The same range twice, two that touch, one within the other, or two apart."""
    least = pick.randint(1, 4)
    one = (least, least + pick.randint(1, 8))
    other = pick.choice([one, (one[1], one[1] + pick.randint(1, 8)), (1, one[1] + pick.randint(1, 40)),
                         (one[1] + 1, one[1] + pick.randint(2, 60))])
    return (one, other) if pick.random() < 0.5 else (other, one)


def values_of(batch, seq, pick):
    """(batch, seq): the corners first."""
    corners = [(b, s) for b in batch for s in seq]
    return corners + [(pick.randint(*batch), pick.randint(*seq)) for _ in range(VALUES - 4)]


def family_kernel_rows(rows, work, server, options, name, ranges_of):
    """The same models through fusionctl and compiled kernels."""
    count = QUICK_KERNELS if options.quick else KERNELS
    right, refused, silent, wrong = 0, 0, [], []
    for seed in range(1, count + 1):
        pick = random.Random(seed)
        batch, seq = ranges_of(pick)
        model = generate(work, name, "--dyn", "--seed", seed, file=f"{name}-{seed}.onnx")
        words = ["--range", f"batch={batch[0]}..{batch[1]}", "--range", f"seq={seq[0]}..{seq[1]}", "--server", server]
        where = f"seed {seed}, batch {batch[0]}..{batch[1]}, seq {seq[0]}..{seq[1]}"
        for b, s in values_of(batch, seq, pick):
            status, said = ctl("verify", model, *words, "--bind", f"batch={b}", "--bind", f"seq={s}", check=False)
            error = said.get("error", {})
            if error.get("code") in REFUSALS:
                refused += 1
                if "node \"" not in error["message"]:
                    silent.append(where)
                break
            if status != 0:
                wrong.append(f"{where}: exit {status} at batch {b}, seq {s}")
                break
        else:
            right += 1
    rows.counted(f"{count} models {name} as kernels: right or refused", not wrong and right > 0,
                 "; ".join(wrong[:3]) or f"{right} right at {VALUES} values each, {refused} refused", "0 wrong")
    rows.counted(f"{count} models {name} as kernels: what is refused has a node", not silent,
                 "; ".join(silent[:3]) or f"{refused} of {refused}", "each")


def families(rows, work, options):
    """What a length decides, in plans for ranges of lengths."""
    rows.section(family_program_rows, options)
    with Daemon(work) as daemon:
        rows.section(family_kernel_rows, work, daemon.address, options, "lengths", one_length)
        rows.section(family_kernel_rows, work, daemon.address, options, "two_lengths", two_lengths)


def poisoned(rows, work, options):
    """Kernels that were made for other shapes than the plan says."""
    for program, which in REACH.items():
        common.test_rows(rows, "poisoned store", program, which, "nothing outside is read")
    if options.quick:
        return
    # The same with every access of ours checked. Kernels are checked before they run: that is what these tests drive.
    run("cmake", "--preset", "asan", timeout=600)
    run("cmake", "--build", "--preset", "asan", "--target", "fusiond", "fusionctl", "fusion-worker", "fusion-exec", *REACH,
        timeout=4 * 3600)
    for program, which in REACH.items():
        common.test_rows(rows, "poisoned store, AddressSanitizer", ROOT / "build/asan/bin" / program, which, "no report",
                         timeout=3600)


def privilege(rows, work, options):
    """What other users of the machine can do, and archives that somebody changed. In a quick run service.sh has them."""
    which = "PrivilegeTest.EachCall*" if options.quick else "PrivilegeTest.*:PoisonedArchiveTest.*:PermissionsTest.*"
    common.test_rows(rows, "privilege", "access_test", which, "refused, and nothing foreign is loaded",
                     must_run=common.of_root("PrivilegeTest", "PoisonedArchiveTest"))


def health(rows, work, options):
    """Health checks beside slow connections to the admin port."""
    calls = 200 if options.quick else 2000
    for more in (), ("--from-others",):
        done = run(sys.executable, "-B", HERE / "admin_health.py", BIN, "--slow", SLOW_CONNECTIONS, "--calls", calls, *more)
        said = json.loads(done.stdout)
        row = f"/healthz beside {SLOW_CONNECTIONS} slow connections{' from others' if more else ''}"
        rows.counted(f"{row}: answered", said["failed"] == 0, f"{calls - said['failed']} of {calls}", "all")
        if not options.quick:
            rows.timed(f"{row}: p99", said["p99_ms"] < HEALTH_MS, f"{said['p99_ms']:.2f} ms", f"< {HEALTH_MS} ms")


def first_answer_row(rows, work, model):
    """From a service that knows nothing to the outputs of one run."""
    took = []
    for _ in range(FIRST_ANSWERS):
        with Daemon(work) as daemon:
            begin = time.monotonic()
            run(BIN / "fusionctl", "run", model, "--threads", 1, "--quiet", "--server", daemon.address)
            took.append(time.monotonic() - begin)
    low, high = common.interval(took)
    rows.timed(f"{model.stem}: first answer", low <= FIRST_ANSWER_S, f"{statistics.median(took):.2f} s [{low:.2f}, {high:.2f}]",
               f"<= {FIRST_ANSWER_S} s")


def run_row(rows, model, python, server):
    sides = {"ours": lambda: contender.ours(server, model, 1), "onnxruntime": lambda: contender.onnxruntime(python, model, 1)}
    bursts, failed = beside.bursts_in_turn(sides, SECONDS, contender.LIMIT_S, lambda name, side: None)
    bar = SCAN_RUNS if model.stem.startswith("CumSum") else RUNS
    row = f"{model.stem}: run / onnxruntime's, 1 thread"
    if failed:
        why = "; ".join(f"{name}: {common.one_line(reason)}" for name, reason in failed.items())[:150]
        rows.add("SHORT" if "ours" in failed else "UNMEASURED", row, why, f"<= {bar}")
        return
    ratio, low, high = beside.ratio(bursts["ours"], bursts["onnxruntime"])
    ours, theirs = (beside.summary(bursts[name])["median_us"] for name in ("ours", "onnxruntime"))
    rows.timed(row, low <= bar, f"{ratio:.2f} [{low:.2f}, {high:.2f}]; {ours:.0f} us, {theirs:.0f} us", f"<= {bar}")


def order(rows, work, options):
    """Orders, choices by value and scans: right, soon there, and not much slower than onnxruntime's."""
    python = contender.peer_python()
    if python is None:
        rows.add("UNMEASURED", "orders, choices and scans", "PyPI cannot be reached", "")
        return
    directory = work / "order"
    directory.mkdir()
    names = json.loads(run(python, "-B", HERE / "order_models.py", directory).stdout)
    for model in [directory / f"{name}.onnx" for name in names]:
        with Daemon(work) as daemon:
            status, said = ctl("verify", model, "--server", daemon.address, check=False)
            message = said.get("error", {}).get("message", "differs")
            rows.counted(f"{model.stem}: as the evaluator", status == 0,
                         f"{said.get('kernels')} kernels" if status == 0 else common.one_line(message)[:150], "equal")
            if not options.quick and status == 0:
                rows.section(run_row, model, python, daemon.address)
        if not options.quick:
            rows.section(first_answer_row, work, model)


def bombs(rows, work, options):
    """Small requests for large things: bombs.py has rows of its own."""
    script = HERE / "bombs.py"
    count = QUICK_BOMBS if options.quick else BOMBS
    if not script.exists():
        rows.add("UNMEASURED", f"{BOMBS} request bombs", "no bombs.py", "answered or refused in time, within memory")
        return
    done = run(sys.executable, "-B", script, BIN, "--count", count, check=False, timeout=2 * 3600)
    found = [line for line in done.stdout.splitlines() if line.split(" ")[0] in ("PASS", "FAIL", "SHORT", "UNMEASURED")]
    for line in found:
        print(line, flush=True)
    rows.lines += found
    failed = any(line.startswith("FAIL") for line in found)
    rows.failed |= failed
    if not found or (done.returncode != 0 and not failed):
        rows.counted(f"{count} request bombs", False, f"exit {done.returncode}: {common.one_line(done.stderr)[-150:]}", "exit 0")


def newest(rows, work, options):
    """ONNX's newest node tests."""
    if not options.quick:
        newest_onnx.newest_onnx_rows(rows, work)


def packages(rows, work, options):
    """Real models that Python packages ship."""
    if not options.quick:
        pypi.pypi_rows(rows, work)


GROUPS = [shared_cases, families, poisoned, privilege, health, order, bombs, packages, newest]


def measure(rows, work, options):
    for group in GROUPS:
        if not options.only or any(text in group.__name__ for text in options.only):
            rows.section(group, work, options)


def add_options(parser):
    parser.add_argument("--only", action="append", default=[], help="groups whose name contains this")
    parser.add_argument("--data", default=ROOT.parent / "shared", help="directory with cases/; default: ../shared")


if __name__ == "__main__":
    sys.exit(common.main("faults found from outside", "faults", measure, add_options))
