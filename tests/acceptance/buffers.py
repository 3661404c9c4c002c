"""Rows about caches that lie in one piece of memory from step to step. Standard library only."""

import statistics

import common
from common import Daemon, ctl, generate

MODEL = "llama_small_decode"
MOST = 511
PAIRS = 7
ONE_TOKEN = ["--bind", "batch=1", "--bind", "seq=1"]
SHARE = ["--share", f"past_*=present_*@{MOST + 1}"]


def of_length(past):
    return [*ONE_TOKEN, "--bind", f"past={past}"]


def right_row(rows, model, server):
    wrong, keys = [], set()
    for past in (0, 1, 100, MOST):
        status, said = ctl("verify", model, "--range", f"past=0..{MOST}", *of_length(past), *SHARE, "--server", server,
                           check=False)
        if status != 0 or not said.get("pass"):
            wrong.append(f"past={past}: {said.get('error', {}).get('message', 'outside the tolerance')}")
        keys.add(said.get("plan_key"))
    rows.counted("caches in place: right at 0, 1, 100 and 511 tokens", not wrong and len(keys) == 1,
                 "; ".join(wrong) or f"4 of 4, {len(keys)} plan", "all of them, one plan")


def steps_row(rows, model, server):
    status, said = ctl("run", model, "--range", f"past=0..{MOST}", *of_length(0), *SHARE, "--steps", "64", "--server",
                       server, check=False)
    steps = [step["cached"] for step in said.get("steps", [])]
    rows.counted("caches in place: 64 steps, each behind the last", status == 0 and steps == list(range(64)),
                 said.get("error", {}).get("message") or f"{len(steps)} steps", "0, 1, 2 ...")


def traffic_row(rows, model, server):
    """What a step need not move: both caches, each of 2 heads of 64 floats a token, but for its own token."""
    _, apart = ctl("plan", model, *of_length(MOST), "--plan-only", "--server", server)
    _, shared = ctl("plan", model, *of_length(MOST), *SHARE, "--plan-only", "--server", server)
    saved = apart["totals"]["activation_bytes"] - shared["totals"]["activation_bytes"]
    caches = 2 * 2 * 64 * 4 * (MOST - 2)
    rows.counted("caches in place: a step does not write them again", saved >= caches, f"{saved} B less of "
                 f"{apart['totals']['activation_bytes']} B, {apart['totals']['launches']} launches -> "
                 f"{shared['totals']['launches']}", f">= {caches} B")


def time_row(rows, model, server):
    def median(*more):
        _, said = ctl("run", model, *of_length(MOST), *more, "--repeat", "200", "--server", server)
        return said["latency_us"]["median"]

    ratios = [median(*SHARE) / median() for _ in range(PAIRS)]
    low, high = common.interval(ratios)
    rows.timed(f"time of a step at {MOST} tokens, against copied caches", low <= 1.0,
               f"{statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}]", "<= 1")


def buffer_rows(rows, work, options):
    with Daemon(work) as daemon:
        model = generate(work, MODEL, "--dyn")
        for section in (right_row, steps_row, traffic_row):
            section(rows, model, daemon.address)
        if not options.quick:
            time_row(rows, model, daemon.address)
