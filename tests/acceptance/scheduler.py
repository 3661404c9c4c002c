"""Rows of tests/acceptance/scheduler.sh. Standard library only."""

import datetime
import json
import math
import os
import pathlib
import re
import sys
import tempfile

import common
import structures
from common import BIN, RESULTS, ROOT, Daemon, ctl, generate, run, test_rows

# Seeds that nothing was tuned on.
HELD_OUT = 1_000_001
# One token after four: its symbolic dims.
GPT2_PAST = ["batch_size=1", "seq_len=4"]
SERIES = [600, 1200, 2500, 5000, 10_000, 20_000, 40_000, 100_000]


def count_row(rows, row, program, which):
    """How many tests of a program pass; the bar is all."""
    tests, status = common.run_tests(program, which, at_once=os.cpu_count() or 1)
    left = sum(test.get("result") == "SKIPPED" for test in tests)
    good = sum(test.get("result") != "SKIPPED" and "failures" not in test for test in tests)
    rows.counted(row, status == 0 and good > 0 and good + left == len(tests),
                 f"{good} of {len(tests)}" + (f", {left} skipped" if left else ""), "all, those skipped say why")


def derivation_rows(rows):
    """What the slicers derive, one row a case, and that other ways to write a case change nothing."""
    test_rows(rows, "derived", "smg_test", "Cases/Streams.*", "as the table of cases says")
    count_row(rows, "cases in disguise: the same is derived", "smg_test", "*DisguisedStreams*")
    count_row(rows, "a law of the algebra less: some case differs", "smg_test", "Streams.NoLawIsIdle")
    count_row(rows, "split-K, split-KV derived", "smg_test", "*Split*")
    test_rows(rows, "windows", "smg_test", "All/Windows.*", "as the table of cases says")
    count_row(rows, "windows and what surrounds them: one kernel each", "plan_test", "*WindowPlans*")
    count_row(rows, "streamed, split, in disguise: interpreter = evaluator", "schedule_test",
              "*StreamLowering*:*SplitLowering*:*DisguisedLowering*")
    count_row(rows, "windows cut with halos: interpreter = evaluator, NaN, inf", "schedule_test", "*WindowSchedules*")
    count_row(rows, "kernels with halos = evaluator, NaN, inf", "kernels_test", "*WindowKernels*")
    count_row(rows, "streamed and split kernels = evaluator, NaN, inf", "kernels_test", "*StreamedKernels*:*SplitKernels*")


def optimum_row(rows, options):
    graphs = 60 if options.quick else 500
    done = run(BIN / "plan_optimum", "--graphs", graphs, "--first", HELD_OUT, "--worst", 0, check=False, timeout=3600)
    found = {name: re.search(rf"^{name} +cost / optimum: median ([\d.]+), p90 ([\d.]+), p99 ([\d.]+), worst ([\d.]+)",
                             done.stdout, re.M) for name in ("planner", "greedy")}
    share = re.search(r"greedy misses the optimum on ([\d.]+) %", done.stdout)
    if not all(found.values()) or share is None:
        raise RuntimeError(f"plan_optimum: exit {done.returncode}: {done.stderr.strip()[-200:]}")
    median, _, p99, worst = (float(x) for x in found["planner"].groups())
    rows.counted(f"plan cost / optimum, {graphs} random graphs", median < 1.005 and p99 <= 1.05,
                 f"median {median:.4f}, p99 {p99:.4f}, worst {worst:.4f}", "median 1.00, p99 <= 1.05")
    rows.counted("the corpus is hard enough: greedy misses the optimum", float(share.group(1)) >= 20,
                 f"{share.group(1)} %, median {found['greedy'].group(1)}, p99 {found['greedy'].group(3)}", ">= 20 %")


def plan_of(model, *arguments):
    return ctl("plan", model, "--plan-only", *arguments)[1]


def off_chip_rows(rows, work):
    """A BERT layer, and attention over 2048 keys."""
    plan = plan_of(generate(work, "bert_layer"))
    kernels = plan["totals"]["kernels"]
    rows.counted("bert_layer: kernels", kernels <= 7, f"{kernels} of {plan['op_by_op']['kernels']} op by op", "<= 7")
    ratio = 1 - plan["totals"]["activation_bytes"] / plan["op_by_op"]["activation_bytes"]
    rows.counted("bert_layer: off-chip traffic of activations", ratio >= 0.8, f"-{100 * ratio:.1f} %", "-80 %")
    length = 2048
    plan = plan_of(generate(work, "mha_nomask", "--seq", length, file="mha.onnx"))
    largest = max((math.prod(t["dims"]) for t in plan["tensors"] if t["space"] == "arena"), default=0)
    square = length * length
    rows.counted(f"attention, S={length}: no S x S tensor off chip", largest < square,
                 f"{plan['totals']['launches']} launch(es), largest tensor between them {largest} elements", f"< {square}")
    plan = plan_of(generate(work, "mha_q1"), "--threads", 64)
    phases = max(kernel["phases"] for kernel in plan["kernels"])
    rows.counted("attention of one query, 64 threads: keys are split", phases == 2, f"{phases} phases", "2: parts, merge")


def verify_rows(rows, work):
    """Plans of more threads than heads run right, too: partial results, then their merge."""
    for name in ("mha_q1", "gpt2_layer_decode", "llama_small_decode"):
        model = generate(work, name)
        status, report = ctl("verify", model, "--threads", 32, check=False)
        outside = sum(o["outside"] for o in report.get("outputs", []))
        rows.counted(f"verify {name} for 32 threads", status == 0 and report["pass"] and report["fallbacks"] == 0,
                     f"{report.get('kernels')} kernels, outside {outside}, fallbacks {report.get('fallbacks')}",
                     "outside 0, fallbacks 0")


def structure_row(rows, work, options):
    models = pathlib.Path(options.data) / "models"
    failed = {}
    found = structures.structures_in(structures.generated(work), failed)
    for path, why in failed.items():
        rows.counted(f"{path.stem} is planned", False, why[-120:], "every model of the generator")
    files = sorted(models.glob("*/*/model.onnx")) if models.exists() else []
    unplanned = {}
    for key, entry in structures.structures_in(files, unplanned).items():
        known = found.setdefault(key, entry)
        known["nodes"] = max(known["nodes"], entry["nodes"])
    for path, why in unplanned.items():
        rows.add("UNMEASURED", f"structures of {path.parent.name}", why[-120:], "-")
    fusions = structures.fusions_of(found)
    rows.counted("structurally distinct fusions", len(fusions) > 30,
                 f"{len(fusions)} in the generator's models and {len(files) - len(unplanned)} of {len(files)} more", "> 30")


def explain_rows(rows, work):
    test_rows(rows, "ledger", "plan_test", "Ledger.EveryGroup*:Ledger.AdjacentNodes*", "a number each")
    for name in ("bert_layer", "vit_block", "llama_small", "t5_encoder", "conv_residual_relu"):
        _, told = ctl("explain", generate(work, name))
        groups = {place["first_group"] for d in told["decisions"] if d["subject"] == "group" for place in d["places"]}
        missing = set(range(len(told["groups"]))) - groups
        pairs = [d for d in told["decisions"] if d["subject"] == "pair"]
        silent = [d for d in pairs if not re.search(r"\d", d["reason"] + " ".join(f["words"] for f in d["flips"]))]
        rows.counted(f"explain {name}", not missing and not silent,
                     f"{len(groups)} of {len(told['groups'])} groups, {len(pairs) - len(silent)} of {len(pairs)} pairs "
                     f"with a number", "all")


def rule_and_lock_rows(rows, work):
    test_rows(rows, "rules", "fusionctl_test", "RulesCommandTest.*", "as the rules say, or an error that says why")
    model = generate(work, "bert_layer")
    lock = pathlib.Path(work) / "plan.lock"
    first = ctl("plan", model, "--write-lock", lock)[1]
    with Daemon(work, store=pathlib.Path(work) / "other") as daemon:
        again = ctl("plan", model, "--lock", lock, "--memory-pressure", 1, "--server", daemon.address)[1]
    same = [a["key"] == b["key"] and a["content_sha256"] == b["content_sha256"]
            for a, b in zip(first["kernels"], again["kernels"])]
    rows.counted("lock: identical digests on another server, other hints", all(same) and len(first["kernels"]) == len(same),
                 f"{sum(same)} of {len(first['kernels'])} kernels", "all")


def frontier_rows(rows, work):
    """What else could be had, and what hints choose of it."""
    def chosen(plan):
        return next(point for point in plan["frontier"] if point["chosen"])
    def as_good(a, b):
        return all(a[axis] <= b[axis] for axis in ("latency_us", "peak_bytes", "compile_s"))

    for name in ("bert_layer", "llama_small"):
        model = generate(work, name)
        usual, pressed = plan_of(model, "--frontier"), plan_of(model, "--memory-pressure", 0.9)
        points = usual["frontier"]
        dominated = [b["name"] for a in points for b in points if a is not b and as_good(a, b)]
        rows.counted(f"frontier of {name}", len(points) >= 2 and not dominated,
                     f"{len(points)} plans: {', '.join(p['name'] for p in points)}; {len(dominated)} dominated",
                     ">= 2, none dominated")
        least, got = min(p["peak_bytes"] for p in points), chosen(pressed)["peak_bytes"]
        rows.counted(f"{name}, memory pressure: peak bytes", got <= 1.01 * least,
                     f"{got} of {chosen(usual)['peak_bytes']}, {chosen(pressed)['latency_us'] / chosen(usual)['latency_us']:.3f} x "
                     f"the time", "the least of the frontier, within 1 %")
        _, told = ctl("explain", model, "--compute-pressure", 0.9)
        speedups = [d["first"]["time_us"] / d["together"]["time_us"] for d in told["decisions"]
                    if d["subject"] == "group" and d["together"] and not d["reason"].startswith("one node")]
        recomputed = sum(g["estimate"]["recompute_bytes"] for g in told["groups"])
        rows.counted(f"{name}, compute pressure: least speed-up of a group", all(s > 1.5 for s in speedups) and recomputed == 0,
                     f"{min(speedups):.2f} of {len(speedups)} groups, {recomputed} B recomputed" if speedups
                     else f"no group of several nodes, {recomputed} B recomputed", "> 1.5, nothing recomputed")


def all_in_one_rows(rows, work):
    """A small model whose kernels are phases of one launch where latency is wanted."""
    model = generate(work, "mlp", "--rows", 1, "--cols", 256, "--depth", 4, file="small.onnx")
    usual, joined = plan_of(model)["totals"], plan_of(model, "--low-latency")["totals"]
    rows.counted("all-in-one: launches of a 4-layer MLP of one row", joined["launches"] == 1 < usual["launches"]
                 and joined["kernels"] == usual["kernels"],
                 f"{joined['launches']} instead of {usual['launches']}, of {joined['kernels']} phases", "1, as many phases")
    _, verified = ctl("verify", model, "--low-latency")
    rows.counted("all-in-one: outputs", verified["pass"] and verified["fallbacks"] == 0,
                 f"max_rel {max(float(o['max_rel']) for o in verified['outputs']):.2g}, {verified['fallbacks']} fallbacks",
                 "pass, no fallback")
    _, told = ctl("explain", model, "--low-latency", "--candidates")
    said = [d["reason"] for d in told["decisions"] if d["subject"] == "group" and d["reason"].startswith("all-in-one")]
    refused = [d for d in told["decisions"] if d["code"] == "pipeline" and re.search(r"\d", d["reason"])]
    rows.counted("all-in-one: explained, pipelines refused", len(said) == 1 and refused,
                 f"{re.search(r'gains [^;]*', said[0]).group(0) if said else 'not told'}; {len(refused)} pipelines refused",
                 "a gain in microseconds, a reason with a number")


def pipeline_rows(rows, work):
    """Sequences of a batch, which need nothing of each other: a task takes some of them through several phases. So
    small that barriers are estimated at a fifth of their time, whatever the CPU."""
    model = generate(work, "bert_tiny", "--batch", 8, "--seq", 4, "--layers", 3, "--hidden", 16, "--heads", 2,
                     "--ff", 32, file="sequences.onnx")
    _, told = ctl("explain", model, "--low-latency", "--threads", 2)
    said = [d["reason"] for d in told["decisions"] if d["subject"] == "group" and d["reason"].startswith("pipeline: ")]
    phases = re.findall(r"phases? \d+ to \d+ are a pipeline", " ".join(said))
    rows.counted("pipelines: phases of the same rows", phases, "; ".join(phases) or "none", "at least one pipeline")
    _, verified = ctl("verify", model, "--low-latency", "--threads", 2)
    rows.counted("pipelines: outputs", verified["pass"] and verified["fallbacks"] == 0,
                 f"max_rel {max(float(o['max_rel']) for o in verified['outputs']):.2g}, {verified['fallbacks']} fallbacks",
                 "pass, no fallback")


def growth(points):
    """The exponent of time ~ nodes^e, by least squares on logarithms."""
    xs = [math.log(p["nodes"]) for p in points]
    ys = [math.log(p["plan_ms"]) for p in points]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)


def growth_picture(points, exponent, title):
    """Planning time over nodes, both logarithmic, as SVG."""
    width, height, left, top, right, bottom = 640, 420, 70, 40, 30, 60
    xs = [math.log10(p["nodes"]) for p in points]
    ys = [math.log10(p["plan_ms"]) for p in points]
    x0, x1 = math.floor(min(xs)), math.ceil(max(xs))
    y0, y1 = math.floor(min(ys)), math.ceil(max(ys))
    def at(x, y):
        return (left + (x - x0) / (x1 - x0) * (width - left - right), height - bottom - (y - y0) / (y1 - y0) * (height - top - bottom))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="13">',
           f'<rect width="{width}" height="{height}" fill="white"/>', f'<text x="{left}" y="24">{title}</text>']
    for x in range(x0, x1 + 1):
        px, _ = at(x, y0)
        out.append(f'<line x1="{px}" y1="{top}" x2="{px}" y2="{height - bottom}" stroke="#ddd"/>'
                   f'<text x="{px}" y="{height - bottom + 20}" text-anchor="middle">{10 ** x:,}</text>')
    for y in range(y0, y1 + 1):
        _, py = at(x0, y)
        out.append(f'<line x1="{left}" y1="{py}" x2="{width - right}" y2="{py}" stroke="#ddd"/>'
                   f'<text x="{left - 8}" y="{py + 4}" text-anchor="end">{10 ** y:g} ms</text>')
    path = " ".join(f"{px:.1f},{py:.1f}" for px, py in (at(x, y) for x, y in zip(xs, ys)))
    out.append(f'<polyline points="{path}" fill="none" stroke="#1f6fb2" stroke-width="2"/>')
    out += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4" fill="#1f6fb2"/>' for px, py in (at(x, y) for x, y in zip(xs, ys))]
    out.append(f'<text x="{width - right}" y="{height - 14}" text-anchor="end">nodes; exponent {exponent:.2f}</text></svg>')
    return "\n".join(out) + "\n"


def scale_rows(rows, options):
    def milliseconds(record):
        return f"{record['plan_ms']:.0f} ms, {record['nodes']} nodes, {record['launches']} launches"

    done = run(BIN / "plan_scale", "--nodes", ",".join(map(str, SERIES)), "--runs", 5, timeout=3600)
    points = json.loads(done.stdout)["series"]
    def nearest(nodes):
        return min(points, key=lambda p: abs(p["nodes"] - nodes))
    with tempfile.TemporaryDirectory(prefix="scale.") as work:
        done = run(BIN / "plan_scale", "--model", generate(work, "bert_12l"), "--runs", 5)
    record = json.loads(done.stdout)["models"][0]
    rows.timed("planning 12-layer BERT", record["plan_ms"] <= 60, milliseconds(record), "<= 60 ms")
    for nodes, bar in ((10_000, 1000), (100_000, 12_000)):
        record = nearest(nodes)
        rows.timed(f"planning a transformer of {nodes} nodes", record["plan_ms"] <= bar, milliseconds(record), f"<= {bar} ms")
    exponent = growth(points)
    rows.timed("growth of planning time, exponent", exponent <= 1.15, f"{exponent:.2f} over {len(points)} sizes", "<= 1.15")
    model = pathlib.Path(options.data) / "models/transformer/gpt2_past/model.onnx"
    if model.exists():
        done = run(BIN / "plan_scale", "--model", model, "--runs", 5, *[a for b in GPT2_PAST for a in ("--bind", b)])
        record = json.loads(done.stdout)["models"][0]
        whole = record["import_ms"] + record["canonical_ms"] + record["plan_ms"]
        rows.timed("planning gpt2_past, with folding", whole <= 400,
                   f"{whole:.0f} ms: import and folding {record['import_ms']:.0f}, planning {record['plan_ms']:.0f}; "
                   f"{record['model_nodes']} nodes", "<= 400 ms")
    else:
        rows.add("UNMEASURED", "planning gpt2_past, with folding", f"no {model}", "<= 400 ms")
    if options.keep:
        cpu, commit = common.machine()
        today = datetime.date.today().isoformat()
        (RESULTS / f"plan_scale-{today}-{commit}.svg").write_text(
            growth_picture(points, exponent, f"planning time, {today}, {commit}, {os.cpu_count()} cores"))


def measure(rows, work, options):
    rows.section(derivation_rows)
    rows.section(optimum_row, options)
    rows.section(off_chip_rows, work)
    rows.section(verify_rows, work)
    rows.section(structure_row, work, options)
    rows.section(explain_rows, work)
    rows.section(rule_and_lock_rows, work)
    rows.section(frontier_rows, work)
    rows.section(all_in_one_rows, work)
    rows.section(pipeline_rows, work)
    if not options.quick:
        rows.section(scale_rows, options)


def add_options(parser):
    parser.add_argument("--data", default=ROOT.parent / "shared", help="directory with models/; default: ../shared")


if __name__ == "__main__":
    sys.exit(common.main("scheduler", "scheduler", measure, add_options))
