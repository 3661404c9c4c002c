"""What ten seconds of `fusionctl tune` gain, by model: rows of learning.sh."""

import math
import statistics

from accuracy import MODELS
from common import Daemon, ctl, generate

SECONDS = 10
GAIN = 1.03  # geometric mean over the models, of the time of their timed kernels
ORDER = 0.9  # rank correlation of a kernel's estimates and times, median


def tuning(rows, work, options):
    """One service tunes each model with one thread. A gain is what pairs of runs of the same process say, so load slows both."""
    if options.quick:
        return  # minutes; tests/service/fusionctl_opt_level_test.cc has the behaviour
    gains, orders, slower = {}, [], []
    with Daemon(work, store=work / "tuning") as daemon:
        for model in MODELS:
            tuned = ctl("tune", generate(work, model), "--threads", 1, "--seconds", SECONDS, "--server", daemon.address)[1]["tune"]
            if not tuned["kernels"]:
                continue
            gains[model] = tuned["pick_us"] / tuned["chosen_us"]
            orders += [k["rank_correlation"] for k in tuned["kernels"] if k["rank_correlation"] is not None]
            for kernel in tuned["search"]["kernels"]:
                chosen, pick = kernel["tried"][kernel["chosen"]], kernel["tried"][0]
                if kernel["chosen"] and chosen["median_us"] > pick["median_us"]:
                    slower.append(model)
        epochs = ctl("epochs", "--train", "--server", daemon.address)[1]["epochs"]
    rows.counted("tuning: models of which kernels were timed", len(gains) >= len(MODELS) - 2, f"{len(gains)} of {len(MODELS)}",
                 f">= {len(MODELS) - 2}")
    rows.timed("tuning: kernels whose new tiles were slower when all were timed", not slower, f"{len(slower)} {' '.join(slower[:3])}",
               "0: the pairs say what is faster")
    logs = [math.log(g) for g in gains.values()]
    mean, error = statistics.mean(logs), 1.96 * statistics.stdev(logs) / math.sqrt(len(logs))
    best = max(gains, key=gains.get)
    rows.timed(f"tuning: {SECONDS} s a model, geometric mean of the gain", math.exp(mean) >= GAIN,
               f"{math.exp(mean):.3f} ({math.exp(mean - error):.3f} .. {math.exp(mean + error):.3f}); {best} {gains[best]:.2f}", f">= {GAIN}")
    rows.timed("tuning: rank correlation of estimates and times of a kernel's tiles", statistics.median(orders) >= ORDER,
               f"median {statistics.median(orders):.2f} of {len(orders)} kernels", f">= {ORDER}")
    if not epochs:
        rows.add("UNMEASURED", "tuning: regret of the choices of tiles", "no constants differ from those of the spec", "")
        return
    epoch = epochs[0]
    before, after = (math.expm1(epoch[side]["regret"]) for side in ("before", "after"))
    rows.counted(f"tuning: regret of {epoch['after']['choices']} choices, constants of the spec and fitted to other models",
                 epoch["state"] == "rejected" or after <= before + 0.001, f"{100 * before:.1f} % -> {100 * after:.1f} %, {epoch['state']}",
                 "it never rises, or the epoch is rejected")
