"""Rows of tests/acceptance/families.sh. Standard library only."""

import random
import statistics
import sys

import common
from common import Daemon, ctl, generate

RANGES = {"batch": (1, 8), "seq": (1, 512)}
QUICK = ["bert_tiny"]
MODELS = ["bert_layer", "llama_small"]
SHAPES = 8
PAIRS = 5
LOSS_BAR = 0.10


def sampled_shapes():
    """Of all that the ranges allow, always the same ones; their ends are among them."""
    pick = random.Random(5)
    ends = [{name: end[i] for name, end in RANGES.items()} for i in (0, 1)]
    return ends + [{name: pick.randint(*ends) for name, ends in RANGES.items()} for _ in range(SHAPES - 2)]


def open_dims():
    return [word for name, (low, high) in RANGES.items() for word in ("--range", f"{name}={low}..{high}")]


def at(shape):
    return [word for name, value in shape.items() for word in ("--bind", f"{name}={value}")]


def words_of(shape):
    return "x".join(str(value) for value in shape.values())


def plan_rows(rows, model, server, name):
    """One plan, every sampled shape against the evaluator, and no compiler after the first."""
    status, first = ctl("plan", model, *open_dims(), "--server", server, check=False)
    if status != 0:
        rows.counted(f"{name}: one plan for batch 1..8 and seq 1..512", False, first["error"]["message"], "a plan")
        return
    keys, wrong = {first["plan_key"]}, []
    for shape in sampled_shapes():
        status, said = ctl("verify", model, *open_dims(), *at(shape), "--server", server, check=False)
        if status != 0 or not said.get("pass"):
            wrong.append(f"{words_of(shape)}: {said.get('error', {}).get('message', 'outside the tolerance')}")
        keys.add(said.get("plan_key"))
    rows.counted(f"{name}: one plan is right at {SHAPES} sampled shapes", not wrong and len(keys) == 1,
                 "; ".join(wrong[:3]) or f"{SHAPES} of {SHAPES}, {len(keys)} plan", "all of them, one plan")
    _, last = ctl("plan", model, *open_dims(), "--server", server)
    compiled = sum(not kernel["cached"] for kernel in last["kernels"])
    rows.counted(f"{name}: nothing is compiled after the first", compiled == 0,
                 f"{compiled} of {len(last['kernels'])} kernels", "0")
    told = {tuple(sample["values"]): sample["family_us"] / sample["exact_us"] - 1 for sample in last["samples"]}
    rows.counted(f"{name}: the answer states what it expects to lose", bool(told),
                 ", ".join(f"{'x'.join(map(str, v))} {100 * loss:.1f} %" for v, loss in told.items()), "at some shapes")


def median_us(model, shape, server, *more):
    rows = shape["batch"] * shape["seq"]
    repeat = 8 if rows > 1000 else 40 if rows > 32 else 1000
    _, said = ctl("run", model, *more, *at(shape), "--repeat", str(repeat), "--server", server)
    return said["latency_us"]["median"]


def loss_rows(rows, model, server, name):
    for shape in sampled_shapes():
        ratios = []
        for _ in range(PAIRS):
            family = median_us(model, shape, server, *open_dims())
            ratios.append(family / median_us(model, shape, server))
        low, high = common.interval(ratios)
        ratio = statistics.median(ratios)
        rows.timed(f"{name}: loss against the exact plan at {words_of(shape)}", low <= 1 + LOSS_BAR,
                   f"{ratio:.3f} [{low:.3f}, {high:.3f}]", f"<= {1 + LOSS_BAR:.2f}")


def measure(rows, work, options):
    with Daemon(work) as daemon:
        for name in QUICK if options.quick else MODELS:
            model = generate(work, name, "--dyn")
            rows.section(plan_rows, model, daemon.address, name)
            if not options.quick:
                rows.section(loss_rows, model, daemon.address, name)


if __name__ == "__main__":
    sys.exit(common.main("plans for families of shapes", "families", measure))
