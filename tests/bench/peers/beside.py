"""Sides measured in turn in one run: bursts of each, medians, intervals of ratios. Standard library only."""

import contextlib
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "acceptance"))

import common

BURST_US = 40_000
PAUSE_S = 0.03  # until spinning threads of the side that ran last have gone to sleep
LEAST_BURSTS = 5


def quantile(values, q):
    return sorted(values)[int(q * (len(values) - 1))]


def bursts_in_turn(make, seconds, prepare_s, check):
    """`make`: name -> what makes a Contender. Name -> bursts of microseconds, as many of each; who goes first rotates. A side
    that cannot run, is not ready after `prepare_s` seconds or of which check(name, side) raises is left out and its reason put
    into `failed`. Returns (bursts, failed)."""
    failed = {}
    with contextlib.ExitStack() as stack:
        sides, runs = {}, {}
        for name, maker in make.items():
            try:
                side = stack.enter_context(maker())
                runs[name] = max(2, int(BURST_US / max(statistics.median(side.burst(3, prepare_s)), 1)))
                check(name, side)
                sides[name] = side
            except RuntimeError as error:
                failed[name] = str(error)
        bursts = {name: [] for name in sides}
        end = time.monotonic() + seconds
        order = list(sides)
        done = 0
        while sides and (time.monotonic() < end or done < LEAST_BURSTS):
            for name in order:
                time.sleep(PAUSE_S)
                bursts[name].append(sides[name].burst(runs[name]))
            order = order[1:] + order[:1]
            done += 1
    return bursts, failed


def call_overhead_us(work, make):
    """Microseconds that a peer takes for a model of one Add of two numbers; `make`: what makes its Contender from a model."""
    model = common.generate(work, "elementwise", "--rows", 1, "--cols", 1, "--depth", 1, file="one_add.onnx")
    with make(model) as peer:
        return statistics.median(us for _ in range(5) for us in peer.burst(1000))


def summary(bursts):
    every = [us for burst in bursts for us in burst]
    return {"median_us": statistics.median(every), "p10_us": quantile(every, 0.1), "p90_us": quantile(every, 0.9),
            "runs": len(every)}


def ratio(over, under, off_us=0.0):
    """over / under, burst by burst, `off_us` taken off `over`: (median, low, high) with a bootstrap 95 % interval."""
    ratios = [max(statistics.median(a) - off_us, 0.01) / statistics.median(b) for a, b in zip(over, under)]
    return statistics.median(ratios), *common.interval(ratios)
