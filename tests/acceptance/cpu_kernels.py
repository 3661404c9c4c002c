"""Rows of tests/acceptance/cpu_kernels.sh. Standard library only; peers run in a venv of their own."""

import json
import math
import os
import pathlib
import shutil
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench/peers"))

import bench as peer_bench
import beside
import cases
import common
import contender
from common import BIN, Daemon, ctl, generate, run


def words(found):
    return (f"{found.ours_us:.1f} us, {found.best.replace('onnxruntime', 'ort')} {found.peer_us:.1f}: "
            f"{found.speed:.2f} [{found.low:.2f}, {found.high:.2f}]" +
            (f", without {', '.join(found.failed)}" if found.failed else ""))


def rate(rows, name, found, bar, aim):
    """One row: PASS by the interval, ROOF where no kernel could reach the bar here."""
    out_of_reach = found.roof_us > 0 and found.peer_us / found.roof_us < bar
    verdict = "PASS" if found.high >= bar else "ROOF" if out_of_reach else "SHORT"
    roof = f", roof {found.roof_us:.1f} us" if found.roof_us else ""
    rows.add(verdict, name, words(found) + roof, f">= {bar:.2f}x, aim {aim:.2f}x")


def group_rows(rows, bench, options, name, bar, aim, worst=None):
    """Every case of a group beside its best peer: each has the bar `worst`, or `bar` if there is none; with `worst` their
    geometric mean has `bar`, and is ROOF where it would stay below that with every case at its roof."""
    group = cases.GROUPS[name]
    if group.needs and not common.host_has(group.needs):
        rows.add("UNMEASURED", f"{name}: all", f"this CPU has no {group.needs}", f">= {worst or bar:.2f}x")
        return
    for threads in options.threads or [1, 2]:
        speeds, at_roof = [], []
        for case in group.cases:
            row = f"{name}: {case.name}, {threads} thread(s)"
            if not selected(options, row):
                continue
            try:
                result = bench.measure(case, threads, *group.arguments)
            except RuntimeError as error:
                rows.add("UNMEASURED", row, common.one_line(error)[-160:], f">= {worst or bar:.2f}x")
                continue
            speeds.append(result.speed)
            if result.roof_us:
                at_roof.append(max(result.speed, result.peer_us / result.roof_us))
            rate(rows, row, result, worst or bar, aim)
        if worst is not None and len(speeds) > 1:
            mean = statistics.geometric_mean(speeds)
            most = statistics.geometric_mean(at_roof) if len(at_roof) == len(speeds) else math.inf
            verdict = "PASS" if mean >= bar else "ROOF" if most < bar else "SHORT"
            rows.add(verdict, f"{name}: geometric mean of {len(speeds)}, {threads} thread(s)",
                     f"{mean:.3f}, worst {min(speeds):.2f}" + (f", at the roof {most:.3f}" if most < math.inf else ""),
                     f">= {bar:.2f}x, aim {aim:.2f}x")


def selected(options, row):
    return not options.only or any(row.lower().startswith(only.lower()) for only in options.only)


def stream_rows(rows, bench, options, title, group, part, out_of_cache_only):
    """The part of the bandwidth of a stream of the same mix that a case reaches."""
    for threads in options.threads or [1, 2]:
        limits = bench.limits_of(threads)
        for case in group:
            row = f"{title}: {case.name}, part of the stream's rate, {threads} thread(s)"
            if not selected(options, row):
                continue
            size = case.reads + case.writes
            if out_of_cache_only and size < 2 * last_cache_bytes():
                continue
            model = generate(bench.work, *case.model, file="stream.onnx")
            with contender.ours(bench.server, model, threads) as ours:
                ours.burst(3)
                got = []
                for _ in range(7):
                    us = statistics.median(ours.burst(max(3, int(20_000 / max(size / 50_000, 1)))))
                    got.append(size / us * 1e6 / limits.stream(case.mix, size))
            rows.timed(row, statistics.median(got) >= part,
                       f"{100 * statistics.median(got):.0f} % of {limits.stream(case.mix, size) / 1e9:.0f} GB/s "
                       f"({case.mix[0]} read, {case.mix[1]} written, {size / 1e6:.1f} MB)", f">= {100 * part:.0f} %")


def last_cache_bytes():
    sizes = [path.read_text().strip() for path in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max((int(size.rstrip("K")) * 1024 for size in sizes), default=32 << 20)


def forced_rows(rows, bench, options):
    """Every case again with kernels for AVX2, reported; not those of instructions that AVX2 lacks."""
    for group in cases.GROUPS.values():
        if group.name == "models" or group.needs:
            continue
        for case in group.cases:
            row = f"avx2: {group.name}: {case.name}, 1 thread(s)"
            if not selected(options, row):
                continue
            try:
                rows.add("PASS", row, words(bench.measure(case, 1, "--isa", "avx2", *group.arguments)), "reported")
            except RuntimeError as error:
                rows.add("UNMEASURED", row, common.one_line(error)[-160:], "reported")


def cold_compile_row(rows, work, options):
    """Every kernel of twelve BERT layers, planned, compiled and checked by a service that has none, with two workers."""
    row = "cold compile: BERT-base, 12 layers, 2 workers"
    if not selected(options, row):
        return
    model = generate(work, "bert_12l")
    seconds, kernels = [], 0
    for _ in range(3 if options.seconds < 4 else 7):
        with Daemon(work, workers=2) as daemon:
            kernels = len(ctl("plan", model, "--server", daemon.address)[1]["kernels"])
            seconds.append(daemon.calls(1)[-1]["ms"] / 1e3)
    low, high = common.interval(seconds)
    rows.timed(row, low <= 1.5, f"{statistics.median(seconds):.2f} s [{low:.2f}, {high:.2f}], {kernels} kernels, n={len(seconds)}",
               "<= 1.5 s, aim 0.6 s")
    model.unlink()


def dispatch_rows(rows, options):
    """What the executor adds to a kernel: launches of kernels that do nothing."""
    for threads in options.threads or [1, 2]:
        if not selected(options, f"dispatch: a launch, {threads} thread(s)"):
            continue
        said = run(BIN / "executor_bench", "--threads", threads, "--runs", 2000, "--pairs", 1, "--json")
        for launch in json.loads(said.stdout)["dispatch"]:
            us = launch["ns_per_launch"] / 1e3
            rows.timed(f"dispatch: a launch, {threads} thread(s), {launch['tasks']} task(s)", us <= 1,
                       f"{us:.3f} us [p10 {launch['p10'] / 1e3:.3f}, p90 {launch['p90'] / 1e3:.3f}]", "<= 1 us")


def fused_rows(rows, work, options):
    """Fused plans beside one kernel a node, of the same code generator, in one run."""
    for threads in options.threads or [1, 2]:
        speeds = []
        for words in cases.SUBGRAPHS:
            row = f"fused / op by op: {' '.join(str(word).removeprefix('--') for word in words)}, {threads} thread(s)"
            if not selected(options, row):
                continue
            _, said = ctl("bench", generate(work, *words), "--threads", threads, "--seconds", max(0.5, options.seconds / 4))
            ratio = said["ratio"]
            speeds.append(1 / ratio["median"])
            rows.timed(row, ratio["low95"] <= 1.0, f"{1 / ratio['median']:.2f}x [{1 / ratio['high95']:.2f}, {1 / ratio['low95']:.2f}]",
                       ">= 1.00x")
        if len(speeds) > 1:
            mean = statistics.geometric_mean(speeds)
            rows.timed(f"fused / op by op: geometric mean of {len(speeds)}, {threads} thread(s)", mean >= 1.5,
                       f"{mean:.2f}x, least {min(speeds):.2f}x", ">= 1.50x, aim 2.00x")


def timing_rows(rows, work, options):
    rows.section(cold_compile_row, work, options)
    rows.section(dispatch_rows, options)
    rows.section(fused_rows, work, options)
    rows.section(tuned_rows, work, options)
    python = contender.peer_python()
    if python is None:
        rows.add("UNMEASURED", "everything beside peers", "onnxruntime cannot be installed here", "-")
        return
    with Daemon(work) as daemon:
        bench = peer_bench.Bench(work, daemon.address, python, options.seconds, contender.other_peers(["openvino"]))
        rows.section(group_rows, bench, options, "gemm", 0.97, 1.0, 0.92)
        rows.section(group_rows, bench, options, "one row", 1.15, 1.4, 1.08)
        rows.section(group_rows, bench, options, "eight rows", 1.05, 1.1, 1.05)
        rows.section(group_rows, bench, options, "causal", 1.5, 1.95)
        rows.section(group_rows, bench, options, "masked", 1.2, 1.3)
        rows.section(group_rows, bench, options, "plain", 1.05, 1.1)
        rows.section(group_rows, bench, options, "decode", 1.2, 1.5)
        rows.section(stream_rows, bench, options, "decode", cases.DECODE, 0.8, False)
        rows.section(group_rows, bench, options, "norm", 2.0, 3.5)
        rows.section(group_rows, bench, options, "softmax", 1.5, 2.0)
        rows.section(group_rows, bench, options, "rmsnorm", 1.2, 1.6)
        rows.section(stream_rows, bench, options, "rows", cases.LAYER_NORM + cases.SOFTMAX + cases.RMS_NORM, 0.8, True)
        rows.section(group_rows, bench, options, "chain", 1.8, 3.0)
        rows.section(group_rows, bench, options, "conv", 0.97, 1.05)
        rows.section(group_rows, bench, options, "layer", 1.06, 1.12, 1.0)
        rows.section(group_rows, bench, options, "tiny", 1.3, 2.0)
        rows.section(group_rows, bench, options, "bf16", 1.6, 1.9)
        rows.section(group_rows, bench, options, "weights in bf16", 1.6, 1.9)
        rows.section(group_rows, bench, options, "weights in i8", 2.5, 3.5)
        rows.section(group_rows, bench, options, "i8 of both", 1.0, 1.5)
        rows.section(group_rows, bench, options, "int8", 1.0, 1.5)
        rows.section(forced_rows, bench, options)


# Ragged and small forms of what the timing rows measure.
RAGGED = [["matmul", "--rows", 129, "--cols", 257, "--hidden", 385], ["matmul", "--rows", 1, "--cols", 33, "--hidden", 77],
          ["matmul", "--rows", 8, "--cols", 100, "--hidden", 31], ["mha_causal", "--seq", 61, "--hidden", 96, "--heads", 4],
          ["mha", "--seq", 37, "--hidden", 60, "--heads", 3], ["mha_nomask", "--seq", 1, "--past", 260, "--hidden", 96, "--heads", 4],
          ["add_bias_layernorm", "--rows", 7, "--cols", 77], ["scale_mask_softmax", "--rows", 5, "--cols", 131],
          ["rmsnorm", "--rows", 3, "--cols", 1001], ["elementwise", "--rows", 9, "--cols", 117, "--depth", 10],
          ["conv_bias_leakyrelu", "--channels", 7, "--image", 13], ["conv1x1", "--channels", 9, "--image", 11],
          ["depthwise", "--channels", 5, "--image", 15], ["lstm_cell"]]


# Weights that are read as they are stored.
NARROW = [["matmul", "--rows", 1, "--cols", 257, "--hidden", 385, "--int8"], ["llama_small_decode", "--int8"]]
# Products of 8 bits by 8 bits.
INTEGERS = [["matmul", "--rows", 129, "--cols", 257, "--hidden", 387, "--qdq"],
            ["matmul", "--rows", 1, "--cols", 33, "--hidden", 78, "--qdq"],
            ["conv_bias_leakyrelu", "--channels", 21, "--image", 13, "--qdq"], ["conv1x1", "--channels", 37, "--image", 9, "--qdq"]]
# Those with products that --numerics fast rounds: few rows on every machine, many where there is a unit for bf16.
FAST_FEW = [["matmul", "--rows", 1, "--cols", 133, "--hidden", 177], ["matmul", "--rows", 7, "--cols", 100, "--hidden", 131]]
FAST_MANY = [["matmul", "--rows", 129, "--cols", 257, "--hidden", 385], ["matmul", "--rows", 8, "--cols", 100, "--hidden", 131]]
# Models with such products among others.
FAST = [["mlp"], ["bert_tiny"], ["llama_small_decode"], ["mlp20_m1_n256"]]
# What a rounding leaves at least, relative to max|b|: sums in f32 are ten times closer.
ROUNDED = 1e-5


def verify_row(rows, work, daemon, words, *arguments, least=0.0):
    """One model beside the evaluator. `least`: what max_rel comes to at least, or nothing was rounded."""
    model = generate(work, *words)
    what = " ".join(str(word).removeprefix("--") for word in [*words, *arguments])
    status, said = ctl("verify", model, "--server", daemon.address, *arguments, check=False)
    outputs = said.get("outputs", [])
    worst = max((float(output["max_rel"]) for output in outputs), default=0.0)
    rows.counted(f"verify {what}",
                 status == 0 and said.get("pass", False) and said.get("fallbacks") == 0 and worst >= least,
                 f"outside {sum(output['outside'] for output in outputs)}, max_rel {worst:.1e}, fallbacks {said.get('fallbacks')}"
                 if outputs else common.one_line(said.get("error", {}).get("message", ""))[:120],
                 "outside 0, fallbacks 0" + (f", max_rel >= {least:.0e}" if least else ""))


def integers_row(rows, work, daemon, words):
    """Whether the products of a quantised model are of what is stored."""
    _, said = ctl("plan", generate(work, *words), "--server", daemon.address, "--isa", "avx512-vnni")
    products = [group["tiles"] for group in said["groups"] if "accumulates" in group["tiles"]]
    narrow = [tiles for tiles in products if "of u8 by columns of i8" in tiles]
    rows.counted(f"multiplies as stored: {' '.join(str(word).removeprefix('--') for word in words)}",
                 len(narrow) == len(products) > 0, f"{len(narrow)} of {len(products)} kernel(s)", "u8 by i8, all of them")


def runs_tiles(work, daemon):
    """Whether plans for this machine are for AMX, which a system may withhold."""
    _, said = ctl("plan", generate(work, "mlp"), "--server", daemon.address)
    return said["isa"] == "avx512-amx"


def correctness_rows(rows, work):
    """Each beside the evaluator, with kernels for this machine and for AVX2."""
    levels = [()] + ([("--isa", "avx2")] if common.host_has("avx2") else [])
    fast = ("--numerics", "fast")
    with Daemon(work) as daemon:
        if common.host_has("avx512_bf16"):  # which some processors have and do not gain by
            for words in FAST_MANY:
                verify_row(rows, work, daemon, words, *fast, "--isa", "avx512-bf16", least=ROUNDED)
        if runs_tiles(work, daemon):
            for words in FAST_MANY:
                verify_row(rows, work, daemon, words, *fast, "--isa", "avx512-amx", least=ROUNDED)
            for words in INTEGERS:
                verify_row(rows, work, daemon, words, "--isa", "avx512-amx")
        for words in INTEGERS:
            if common.host_has("avx512_vnni"):
                integers_row(rows, work, daemon, words)
        for isa in levels:
            for words in RAGGED + NARROW + INTEGERS:
                verify_row(rows, work, daemon, words, *isa)
            for words in FAST_FEW:
                verify_row(rows, work, daemon, words, *fast, *isa, least=ROUNDED)
            for words in FAST_MANY:
                verify_row(rows, work, daemon, words, *fast, *isa)
            for words in FAST:
                verify_row(rows, work, daemon, words, *fast, *isa)


def math_rows(rows, options):
    """Each function of the generated code on every float, or on one in 16381 with --quick and where --only names other
    rows, beside f64. The name of the row says which."""
    levels = [level for level, flag in (("avx512", "avx512f"), ("avx2", "avx2")) if common.host_has(flag)] or ["x86_64_v2"]
    whole = [level for level in levels if not options.quick and selected(options, f"math, every float, {level}")]
    if whole:
        os.environ["FUSION_EVERY_FLOAT"] = "1"
    try:
        for level in whole or levels[:1]:
            floats = "every float" if whole else "one float in 16381"
            common.test_rows(rows, f"math, {floats}, {level}", "codegen_test",
                             f"*Prelude.FloatsAreAsAccurateAsStated/generic_{level}",
                             "units in the last place, as stated", timeout=7200)
    finally:
        os.environ.pop("FUSION_EVERY_FLOAT", None)


def stable_rows(rows, work):
    """Runs of one plan, in processes of their own, give the same bits."""
    with Daemon(work) as daemon:
        models = [(words, ()) for words in (["bert_tiny"], ["mha_causal", "--seq", 61],
                                            ["mha_nomask", "--seq", 1, "--past", 2047], ["conv_bias_leakyrelu"],
                                            ["add_bias_layernorm"], ["lstm_cell"], NARROW[0], INTEGERS[0])]
        models += [(words, ("--numerics", "fast")) for words in (FAST_FEW[0], FAST_MANY[0])]
        for words, arguments in models:
            model = generate(work, *words)
            what = " ".join(str(word).removeprefix("--") for word in [*words, *arguments])
            for threads in (1, 2):
                runs = set()
                for number in range(5):
                    out = pathlib.Path(work) / f"stable.{number}"
                    run(BIN / "fusionctl", "run", model, "--server", daemon.address, "--threads", threads, "--out", out,
                        *arguments)
                    runs.add(tuple(path.read_bytes() for path in sorted(out.iterdir())))
                    shutil.rmtree(out)
                rows.counted(f"bitwise stable: {what}, {threads} thread(s)", len(runs) == 1 and len(next(iter(runs))) > 0,
                             f"{len(runs)} result(s) of 5 runs", "1 result")


# Models whose plans are timed with and without a search.
TUNED = [["bert_layer", "--seq", 128], ["vit_block"], ["llama_small"], ["llama_small_decode"], ["mlp20_m1_n256"],
         ["conv_bias_leakyrelu"]]
# What a search for tiles is asked of, on one thread: other programs may have the other cores.
SEARCHED = [["bert_tiny"], ["mlp"], ["mha_causal", "--seq", 61, "--hidden", 96, "--heads", 4]]
LEAST_RATIO = 0.98  # a cut takes the place of the model's pick where the interval of the ratio ends below this


def searches_of(daemon):
    """What the service has logged of searches for tiles."""
    return [line for line in daemon.log_path.read_text().split("\n") if '"tiles_searched"' in line]


def searched_kernels(*command):
    """The kernels of a search, which an explanation has and a plan has not."""
    _, explained = ctl(*command)
    return explained["search"]["kernels"]


def opt_level_rows(rows, work):
    """Plans with --opt-level: what they are, that they are kept, and that they compute what they should."""
    store = pathlib.Path(work) / "searched"
    for words in SEARCHED:
        model = generate(work, *words)
        name = " ".join(str(word).removeprefix("--") for word in words)
        with Daemon(work, store=store) as daemon:
            ask = ["plan", model, "--server", daemon.address, "--threads", 1]
            _, plain = ctl(*ask)
            _, zero = ctl(*ask, "--opt-level", 0)
            rows.counted(f"opt-level 0: {name}", zero["plan_key"] == plain["plan_key"] and zero["search"] is None and
                         not searches_of(daemon), f"{len(searches_of(daemon))} searches", "the plan without the option")
            _, tuned = ctl(*ask, "--opt-level", 1)
            search = tuned["search"]
            kernels = searched_kernels("explain", *ask[1:], "--opt-level", 1)
            changed = [kernel for kernel in kernels if kernel["chosen"] > 0]
            slower = [kernel for kernel in changed if not 0 < kernel["ratio_high"] < LEAST_RATIO]
            rows.counted(f"opt-level 1, kernels cut otherwise: {name}",
                         search["state"] == "done" and search["measured"] > 0 and len(kernels) > 0 and
                         len(changed) == search["changed"] and not slower,
                         f"{len(changed)} of {len(kernels)}, {search['measured']} timed, {search['seconds']:.1f} s",
                         f"each ratio's interval ends below {LEAST_RATIO}")
            verify_row(rows, work, daemon, words, "--threads", 1, "--opt-level", 1)
            _, again = ctl(*ask, "--opt-level", 1)
            rows.counted(f"opt-level 1, once more: {name}",
                         again["search"] == search and again["groups"] == tuned["groups"] and len(searches_of(daemon)) == 1,
                         f"{len(searches_of(daemon))} search, {again['cache']}", "nothing is timed")
        with Daemon(work, store=store) as daemon:
            _, kept = ctl("plan", model, "--server", daemon.address, "--threads", 1, "--opt-level", 1)
            rows.counted(f"opt-level 1, after a restart: {name}",
                         kept["search"] == search and kept["groups"] == tuned["groups"] and not searches_of(daemon),
                         f"{len(searches_of(daemon))} searches, {kept['cache']}", "nothing is timed")


def tuned_rows(rows, work, options):
    """Plans of --opt-level 2 beside those of 0, in turn, in one run; reported."""
    for threads in options.threads or [1, 2]:
        speeds = []
        for words in TUNED:
            row = f"opt-level 2 / 0: {' '.join(str(word).removeprefix('--') for word in words)}, {threads} thread(s)"
            if not selected(options, row):
                continue
            model = generate(work, *words)
            with Daemon(work) as daemon:
                ask = [model, "--server", daemon.address, "--threads", threads, "--opt-level", 2]
                _, tuned = ctl("plan", *ask)
                kernels = searched_kernels("explain", *ask)
                make = {level: lambda level=level: contender.ours(daemon.address, model, threads, "--opt-level", level)
                        for level in (0, 2)}
                bursts, failed = beside.bursts_in_turn(make, options.seconds, contender.LIMIT_S, lambda name, side: None)
            if failed:
                rows.add("UNMEASURED", row, common.one_line(failed)[-160:], "reported")
                continue
            speed, low, high = beside.ratio(bursts[0], bursts[2])
            speeds.append(speed)
            rows.timed(row, high >= 1.0, f"{speed:.3f}x [{low:.3f}, {high:.3f}], {tuned['search']['changed']} of "
                       f"{len(kernels)} kernels, {tuned['search']['seconds']:.1f} s", ">= 1.00x, reported")
        if len(speeds) > 1:
            mean = math.exp(statistics.fmean(math.log(s) for s in speeds))
            rows.timed(f"opt-level 2 / 0: geometric mean of {len(speeds)}, {threads} thread(s)", mean >= 1.0,
                       f"{mean:.3f}x, least {min(speeds):.3f}x", ">= 1.00x, reported")


def add_options(parser):
    parser.add_argument("--only", action="append", help="timing rows whose name begins so, and math rows on every float only if it is 'math' or 'math, every "
                             "float, avx512'; may be given more than once")
    parser.add_argument("--seconds", type=float, default=8, help="for each case and number of threads")
    parser.add_argument("--threads", type=int, action="append", help="default: 1 and 2")


def measure(rows, work, options):
    rows.section(correctness_rows, work)
    rows.section(stable_rows, work)
    rows.section(opt_level_rows, work)
    rows.section(math_rows, options)
    if not options.quick:
        rows.section(timing_rows, work, options)


if __name__ == "__main__":
    sys.exit(common.main("CPU kernels", "cpu_kernels", measure, add_options))
