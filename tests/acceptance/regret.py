"""How much slower the planner's choice is than the best plan that was measured, before and after reports: rows of learning.sh."""

import math
import statistics
import time

from common import Daemon, ctl, generate

SUBGRAPHS = ("mha", "mha_nomask", "mha_q1", "mlp", "mlp4_m64_n1024", "mlp8_m1024_n128", "swiglu", "add_relu", "bias_gelu", "layernorm",
             "softmax", "scale_mask_softmax", "conv_bn_relu", "mbconv", "depthwise", "bert_layer", "gpt2_layer_decode", "llama_small_decode",
             "t5_encoder", "vit_block")
REPORTS = 2000  # samples of launches and runs
SECONDS = 0.5
ROUNDS = 3
NOISE = 0.03
# A hint too weak to matter gives a plan a key of its own: it is made again, with what was learned meanwhile.
AGAIN = ("--memory-pressure", 0.01)


def bench(path, daemon, *more):
    return ctl("bench", path, "--threads", 1, "--seconds", SECONDS, "--server", daemon.address, *more)[1]


def kernels(path, daemon, *more):
    plan = ctl("plan", path, "--threads", 1, "--server", daemon.address, *more)[1]
    return [kernel["key"] for kernel in plan["kernels"]]


def medians(path, ways):
    """Microseconds of a run by way of planning, and op by op; the ways take turns, so that load slows all of them."""
    times = {way: [] for way in ways}
    apart = []
    for _ in range(ROUNDS):
        for way, (daemon, *more) in ways.items():
            found = bench(path, daemon, "--no-report", *more)
            times[way].append(found["fused"]["latency_us"]["median"])
            apart.append(found["op_by_op"]["latency_us"]["median"])
    return {way: statistics.median(of) for way, of in times.items()} | {"op by op": statistics.median(apart)}


def in_use(daemon):
    """Epochs that new plans are made with, once there is one or half a minute is over."""
    end = time.monotonic() + 30
    while True:
        epochs = ctl("epochs", "--server", daemon.address)[1]["epochs"]
        found = [epoch for epoch in epochs if epoch["state"] in ("canary", "active")]
        if found or time.monotonic() > end:
            return found
        time.sleep(0.5)


def regret(rows, work, options):
    """Two services with one thread. One does not learn; the other gets reports, and makes each plan again with its epoch. The best of all
    plans that were measured, races of tiles among them, is the reference."""
    if options.quick:
        return  # minutes on an idle machine
    paths = {name: generate(work, name) for name in SUBGRAPHS}
    with Daemon(work, store=work / "spec", more=["--learn", "false"]) as spec, \
            Daemon(work, store=work / "learns", more=["--canary-percent", "100"]) as learns:
        reports = 0
        for _ in range(20):
            reports += sum(bench(path, learns)["reported_samples"] or 0 for path in paths.values())
            if reports >= REPORTS:
                break
        ctl("epochs", "--train", "--server", learns.address)
        epochs = in_use(learns)
        rows.counted("regret: an epoch is in use", bool(epochs) and reports >= REPORTS,
                     f"{reports} samples, {', '.join(epoch['state'] for epoch in epochs) or 'none'}", "canary or active")
        before, after, changed, slower = [], [], [], []
        for name, path in paths.items():
            ways = {"spec": (spec,), "raced": (spec, "--opt-level", 1)}
            if kernels(path, learns, *AGAIN) != kernels(path, spec):
                ways["learned"] = (learns, *AGAIN)
                changed.append(name)
            times = medians(path, ways)
            best = min(times.values())
            before.append(times["spec"] / best - 1)
            after.append(times.get("learned", times["spec"]) / best - 1)
            if after[-1] > before[-1] + NOISE:
                slower.append(f"{name} {times['spec']:.0f} -> {times['learned']:.0f} us")
    figures = [f"median {100 * statistics.median(of):.1f} %, mean {100 * math.expm1(statistics.mean(map(math.log1p, of))):.1f} %, "
               f"worst {100 * max(of):.1f} % ({SUBGRAPHS[of.index(max(of))]})" for of in (before, after)]
    rows.add("PASS", f"regret of {len(SUBGRAPHS)} subgraphs with the constants of the spec", figures[0], "(not judged)")
    rows.timed(f"regret after {reports} samples, {len(changed)} plans changed", bool(changed) and statistics.median(after) <=
               statistics.median(before) + 0.01 and max(after) <= max(before) + NOISE, figures[1], "no more than before, some plans changed")
    rows.timed("regret: plans that became slower", not slower, "; ".join(slower) or f"0 of {len(changed)}", f"0 by more than {NOISE:.0%}")
