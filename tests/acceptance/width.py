"""Rows of tests/acceptance/width.sh. Standard library only."""

import glob
import json
import os
import pathlib
import re
import statistics
import sys

import common
from common import BIN, ROOT, Daemon, ctl, generate, run, test_rows

# What a quick run makes of the parameters a generated model has.
SMALL = {"seq": 16, "source": 16, "past": 16, "layers": 2, "hidden": 96, "heads": 4, "kv_heads": 2, "ff": 160,
         "rows": 24, "cols": 48, "depth": 3, "channels": 8, "image": 32}
SHARED = [f"transformer/{name}" for name in ("vespa_dummy_transformer", "vespa_random_encoder", "gpt2_past", "smollm_1",
                                             "phi2lm", "whisper_encoder", "rotary_1")] + ["vision-trained/mnist"]
DEVICES = ["ascend_910b", "ascend_910", "a100", "h100", "h200"]
VERIFY_BAR = "outside 0, fallbacks 0"
QUICK_HEADERS = 100


def generated_models():
    """Name -> parameters and their defaults, as the generator lists them."""
    models, name = {}, None
    for line in run(BIN / "fusion-modelgen", "--list").stdout.splitlines():
        if not line.startswith(" "):
            name = line.split()[0]
            models[name] = {}
        else:
            models[name].update({key: int(value) for key, value in re.findall(r"--(\w+) (\d+)", line)})
    return models


def small_arguments(parameters):
    """Generator arguments for a quick run; what is 0 or smaller already stays."""
    out = []
    for key, value in parameters.items():
        if SMALL.get(key, value) < value:
            out += [f"--{key}", SMALL[key]]
    return out


def verify_row(rows, row, model, *arguments):
    status, report = ctl("verify", model, *arguments, check=False)
    if "outputs" not in report:
        rows.counted(row, False, f"exit {status}: {report['error']['message'][:120]}", VERIFY_BAR)
        return
    outside = sum(o["outside"] for o in report["outputs"])
    worst = max((float(o["max_rel"]) for o in report["outputs"]), default=0)
    ok = status == 0 and report["pass"] and outside == 0 and report["fallbacks"] == 0
    rows.counted(row, ok, f"{report['nodes']} nodes, {report['kernels']} kernels, max_rel {worst:.1e}, "
                 f"outside {outside}, fallbacks {report['fallbacks']}", VERIFY_BAR)


def generated_rows(rows, work, options):
    models = generated_models()
    with Daemon(work) as daemon:
        for name, parameters in models.items():
            arguments = small_arguments(parameters) if options.quick else []
            model = generate(work, name, *arguments)
            rows.section(verify_row, f"verify {name}", model, "--server", daemon.address)
            model.unlink()


def shared_rows(rows, work, options):
    models = pathlib.Path(options.data) / "models"
    names = SHARED + sorted(str(p.parent.relative_to(models)) for p in models.glob("recurrent/*/model.onnx"))
    if not any(n.startswith("recurrent/") for n in names):
        names.append("recurrent")
    with Daemon(work) as daemon:
        for name in names:
            model = models / name / "model.onnx"
            if not model.exists():
                rows.add("UNMEASURED", f"verify {name}", f"no {model}", VERIFY_BAR)
                continue
            data = ["--data", model.parent] if glob.glob(f"{model.parent}/test_data_set_*/output_0.pb") else []
            rows.section(verify_row, f"verify {name}", model, *data, "--server", daemon.address)


def missing(value, paths):
    """Which of the dotted paths lead to nothing, or to null."""
    out = []
    for path in paths:
        at = value
        for key in path.split("."):
            at = at.get(key) if isinstance(at, dict) else None
        if at is None:
            out.append(path)
    return out


def tool_rows(rows, work):
    """bench, report, list and capabilities, on one service."""
    model = generate(work, "bert_tiny")
    fields = [f"{plan}.{field}" for plan in ("fused", "op_by_op") for field in
              ("latency_us.median", "latency_us.p10", "latency_us.p90", "totals.activation_bytes", "totals.launches",
               "memory.peak_bytes", "plan_ms", "compile_ms")] + ["ratio.median", "ratio.low95", "ratio.high95"]
    with Daemon(work) as daemon:
        at = ["--server", daemon.address]
        status, bench = ctl("bench", model, "--threads", 1, "--pairs", 20, *at, check=False)
        gone = missing(bench, fields)
        rows.counted("bench --json: fields", status == 0 and not gone,
                     f"{len(fields) - len(gone)} of {len(fields)}" + (f", without {gone[0]}" if gone else ""),
                     f"{len(fields)}: latency, traffic, launches, bytes, plan and compile time of both plans")
        ran = bench.get("pairs")
        rows.counted("bench: pairs as asked for", ran == 20, f"{ran}", "20")
        samples = bench.get("reported_samples") or 0
        rows.counted("bench: reports what kernels took", samples > 0, f"{samples} samples", "> 0")

        status, report = ctl("report", model, "--threads", 1, *at, check=False)
        kernels = [k for plan in report.get("plans", []) for k in plan["kernels"]]
        columns = ["label", "measured.median_us", "estimated_us", "estimated_speedup", "measured.calls",
                   "traffic_saved_bytes"]
        whole = [k for k in kernels if not missing(k, columns)]
        measured = [k for k in whole if k["measured"]["calls"] > 0 and k["measured"]["median_us"] > 0]
        rows.counted("report: a row for each kernel", status == 0 and bool(kernels) and len(measured) == len(kernels),
                     f"{len(measured)} of {len(kernels)} kernels with output, latency, speed-up, calls, traffic", "all")
        page = pathlib.Path(work) / "report.html"
        done = run(BIN / "fusionctl", "report", model, "--threads", 1, "--html", page, *at, check=False)
        text = page.read_text() if page.exists() else ""
        elsewhere = re.search(r'(src|href)\s*=\s*["\']?\s*(https?:)?//', text)
        rows.counted("report --html", done.returncode == 0 and "<svg" in text and elsewhere is None,
                     f"exit {done.returncode}, {len(text)} bytes", "charts, nothing fetched from elsewhere")

        status, plans = ctl("list", *at, check=False)
        keys = [p["plan_key"] for p in plans.get("plans", [])]
        rows.counted("list: what was planned", status == 0 and bench.get("fused", {}).get("plan_key") in keys,
                     f"{len(keys)} plans", "the plan of bench is among them")
        status, able = ctl("capabilities", *at, check=False)
        names = {d["name"] for d in able.get("devices", [])}
        ops = len(able.get("ops", []))
        rows.counted("capabilities: operators", status == 0 and ops >= 40, f"{ops}", ">= 40")
        rows.counted("capabilities: devices", set(DEVICES) <= names,
                     f"{len(names)}, {len(set(DEVICES) & names)} of the five", "all five")
        limits = {limit["name"]: limit["value"] for limit in able.get("limits", [])}
        rows.counted("capabilities: limits", sum(v > 0 for v in limits.values()) >= 4, f"{len(limits)}",
                     ">= 4: bytes, objects, nodes, calls")
    for shell in ("bash", "zsh", "fish"):
        done = run(BIN / "fusionctl", "completion", shell, check=False)
        ok = done.returncode == 0 and "fusionctl" in done.stdout and "bench" in done.stdout
        rows.counted(f"completion {shell}", ok, f"exit {done.returncode}, {len(done.stdout.splitlines())} lines", "names the commands")


def device_rows(rows, work):
    """A BERT layer, and a chain of tensors that no cache of these devices holds."""
    models = [generate(work, "bert_layer"), generate(work, "elementwise", "--rows", 16384, "--cols", 8192)]
    seen = {}
    for device in DEVICES:
        figures, shown = [], []
        for model in models:
            status, plan = ctl("plan", model, "--target", device, "--plan-only", check=False)
            if status != 0 or plan["target"] != device:
                shown.append(plan["error"]["message"][:80] if "error" in plan else f"planned for {plan['target']}")
                continue
            totals = plan["totals"]
            figures.append((totals["kernels"], totals["activation_bytes"], round(totals["estimated_us"], 3),
                            tuple(group["ops"] for group in plan["groups"])))
            shown.append(f"{totals['kernels']} kernels, {totals['estimated_us']:.0f} us")
        rows.counted(f"plan --target {device} --plan-only", len(figures) == len(models),
                     "BERT layer: " + "; 20 ops on 512 MiB: ".join(shown), "a plan of each")
        seen[device] = tuple(figures)
    different = len(set(seen.values()))
    rows.counted("plans of the five devices differ", different == len(DEVICES), f"{different} different", len(DEVICES))


def executor_rows(rows):
    """Figures of tests/bench/executor_bench; a machine that does nothing else is theirs to want."""
    done = run(BIN / "executor_bench", "--json", check=False, timeout=900)
    if done.returncode != 0:
        rows.add("UNMEASURED", "executor", done.stderr.strip()[:120], "sampling < 0.5 %, dispatch <= 2 us")
        return
    figures = json.loads(done.stdout)
    for row in figures["sampling"]:
        if row["sampling"] != "on":
            continue  # what the method cannot see
        percent = {key: 100 * (row[key] - 1) for key in ("ratio", "low95", "high95")}
        rows.timed(f"latency sampling: {row['plan']}, {row['threads']} thread(s)", percent["ratio"] < 0.5,
                   f"{percent['ratio']:+.2f} % [{percent['low95']:+.2f}, {percent['high95']:+.2f}]", "< 0.5 %")
    for row in figures["dispatch"]:
        us = {key: row[key] / 1000 for key in ("ns_per_launch", "p10", "p90")}
        rows.timed(f"dispatch, {row['threads']} thread(s), {row['tasks']} task(s)", us["ns_per_launch"] <= 2,
                   f"{us['ns_per_launch']:.2f} us a launch ({us['p10']:.2f} .. {us['p90']:.2f})", "<= 2 us")


def guard_rows(rows):
    test_rows(rows, "guards", "server_test", "GuardTest.*", "tests/service/guard_test.cc")
    test_rows(rows, "guards", "server_test", "BadRequestTest.Compressed:BadRequestTest.Oversize",
              "tests/service/bad_request_test.cc")


def soak_rows(rows, options):
    clients, seconds = 64, 5 if options.quick else 60
    done = run(BIN / "soak", "--clients", clients, "--seconds", seconds, "--json", check=False, timeout=seconds + 300)
    if not done.stdout:
        rows.counted(f"{clients} mixed clients", False, done.stderr.strip()[:120], "0 unexpected")
        return
    result = json.loads(done.stdout)
    words = [w for call in result["by_call"].values() for w in call["unexpected"]] + result["server_errors"]
    example = f": {words[0][:80]}" if words else ""
    rows.counted(f"{clients} mixed clients, {seconds} s", done.returncode == 0 and result["unexpected"] == 0,
                 f"{result['calls']} calls, {result['unexpected']} unexpected{example}", "0 unexpected")
    if not options.quick:
        known = result["by_call"]["plan known"]
        rows.counted(f"{clients} mixed clients: memory of the server",
                     result["resident_end_bytes"] < 2 * result["resident_start_bytes"] + (256 << 20),
                     f"{result['resident_start_bytes'] >> 20} -> {result['resident_end_bytes'] >> 20} MiB, "
                     f"{result['calls_per_s']:.0f} calls/s, known plans p50 {known['p50_ms']:.1f} ms, "
                     f"p99 {known['p99_ms']:.1f} ms", "< twice and the memory limit")


def header_rows(rows, options):
    """All headers take ten minutes of two slow cores: --quick compiles those that commits have touched last."""
    commands = json.loads((ROOT / "build/release/compile_commands.json").read_text())
    alone = re.compile(r"(?:_verify_interface_header_sets|/tests/tools/headers)/(.*\.h)\.\w+$")
    objects = {found[1]: re.search(r" -o (\S+)", c["command"])[1] for c in commands if (found := alone.search(c["file"]))}
    headers = {str(path.relative_to(ROOT)) for folder in ("core", "server", "client") for path in (ROOT / folder).rglob("*.h")}
    rows.counted("each header has a source that includes nothing else", set(objects) == headers != set(),
                 f"{len(set(objects) & headers)} of {len(headers)}", "all")
    wanted, count, targets = "all", len(objects), ["header_check"]
    log = run("git", "-C", ROOT, "log", "-40", "--format=", "--name-only", check=False)
    if options.quick and log.returncode == 0:
        touched = [name for name in dict.fromkeys(log.stdout.split()) if name in objects]  # the newest first
        targets = [objects[name] for name in touched[:QUICK_HEADERS]]
        wanted, count = f"of those that the latest 40 commits touched the first {QUICK_HEADERS}", len(targets)
        if not targets:
            rows.add("UNMEASURED", "headers stand alone (target header_check)", "the latest 40 commits touched none", wanted)
            return
    done = run("cmake", "--build", "--preset", "release", "--target", *targets, check=False, timeout=3600)
    broken = re.search(r"error: .*", done.stdout + done.stderr)
    rows.counted("headers stand alone (target header_check)", done.returncode == 0,
                 f"{count} compiled alone" if done.returncode == 0 else
                 f"exit {done.returncode}: {broken[0] if broken else common.one_line(done.stderr)}"[:120], wanted)


def structure_rows(rows):
    """The build refuses what the layering forbids, and an operator is one file."""
    for row, which, bar in (("upward include breaks the build", "unit/layering", "one is compiled and must fail"),
                            ("a header that cannot stand alone breaks its check", "header_check",
                             "one is compiled and must fail"),
                            ("stages on text graphs", "golden", "golden texts as they are"),
                            ("generated sources of a fixed corpus", "replay", "byte-identical")):
        common.ctest_row(rows, row, which, bar)
    log = run("git", "-C", ROOT, "log", "--format=%x00%h", "--name-status", check=False).stdout
    best = None
    for commit in log.split("\0")[1:]:
        name, *lines = commit.strip().split("\n")
        changed = [line.split("\t") for line in lines if "\t" in line]
        sources = [path for _, path, *_ in changed if path.endswith((".cc", ".h")) and not path.startswith("tests/")]
        added = [path for how, path, *_ in changed if how == "A" and path.startswith("core/op/defs/")]
        if len(added) == 1 and (best is None or len(sources) < best[0]):
            best = (len(sources), name, added[0])
    if best is None:
        rows.add("UNMEASURED", "an operator is one source file", "no history, or no commit that adds exactly one", "1")
    else:
        rows.counted("an operator is one source file", best[0] == 1,
                     f"{best[1]} adds {best[2]}: {best[0]} source file(s)", "1")


def bench_rows(rows, work):
    """Fused against op by op, each model with as many threads as the machine has."""
    for name in ("bert_layer", "llama_small", "t5_encoder", "lstm_unroll10", "conv_bn_relu", "mbconv"):
        model = generate(work, name)
        for threads in sorted({1, os.cpu_count() or 1}):
            _, bench = ctl("bench", model, "--threads", threads, "--seconds", 4)
            ratio = bench["ratio"]
            rows.timed(f"{name}, {threads} thread(s): fused / op by op", ratio["high95"] <= 1.02,
                       f"{bench['fused']['latency_us']['median']:.0f} us / "
                       f"{bench['op_by_op']['latency_us']['median']:.0f} us = {ratio['median']:.3f} "
                       f"[{ratio['low95']:.3f}, {ratio['high95']:.3f}]", "upper bound <= 1.02")


def peer_rows(rows, work, options):
    """The table itself is kept by who runs tests/bench/peers.sh; here a short one shows that it is measured."""
    quick = run(ROOT / "tests/bench/peers.sh", "--quick", check=False)
    last = (quick.stdout.strip().splitlines() or [f"FAIL {quick.stderr.strip()[-100:]}"])[-1]
    verdict, _, figure = last.partition(" ")
    rows.add(verdict if quick.returncode == 0 else "FAIL", "peers.sh --quick", " ".join(figure.split()),
             "both sides answer")
    if options.quick:
        return
    bar = "eleven models, 1 and 2 threads"
    if verdict == "UNMEASURED":
        rows.add("UNMEASURED", "peer table: complete", "onnxruntime cannot be installed here", bar)
        return
    out = pathlib.Path(work) / "peers"
    done = run(ROOT / "tests/bench/peers.sh", "--seconds", 2, "--out", out, check=False, timeout=3600)
    tables = list(out.glob("peers-*.json"))
    table = json.loads(tables[0].read_text())["rows"] if tables else []
    measured = {(row["model"], row["threads"]): row["onnxruntime"]["ratio"] for row in table if "ours" in row}
    models, threads = {model for model, _ in measured}, {count for _, count in measured}
    whole = len(models) >= 11 and threads >= {1, 2} and len(measured) == len(models) * len(threads)
    middle = f", median ratio {statistics.median(measured.values()):.2f}" if measured else ""
    errors = [row["error"] for row in table if "error" in row] + [done.stderr]
    wrong = f": {common.one_line(errors[0])[:80]}" if done.returncode != 0 else ""
    rows.counted("peer table: complete", done.returncode == 0 and whole,
                 f"{len(measured)} of {len(table)} rows{middle}{wrong}", bar)


def measure(rows, work, options):
    rows.section(generated_rows, work, options)
    rows.section(shared_rows, work, options)
    rows.section(tool_rows, work)
    rows.section(device_rows, work)
    rows.section(guard_rows)
    rows.section(soak_rows, options)
    rows.section(header_rows, options)
    rows.section(structure_rows)
    rows.section(peer_rows, work, options)
    if not options.quick:
        rows.section(executor_rows)
        rows.section(bench_rows, work)


def add_options(parser):
    parser.add_argument("--data", default=ROOT.parent / "shared", help="directory with models/; default: ../shared")


if __name__ == "__main__":
    sys.exit(common.main("width", "width", measure, add_options))
