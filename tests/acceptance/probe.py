"""Constants that fusionctl probe measures on this machine, and how far estimates with them are off: rows of learning.sh."""

import json
import math
import statistics

from common import Daemon, ctl, generate

MODELS = ("bert_layer", "gpt2_layer_decode", "mlp", "softmax", "layernorm", "add_relu", "conv_bn_relu")
SECONDS = 2
CONSTANTS = {"product_rate", "total_product_rate", "scalar_rate", "total_scalar_rate", "l1.bandwidth", "l1.total_bandwidth", "l2.bandwidth",
             "l2.total_bandwidth", "memory.bandwidth", "memory.total_bandwidth", "launch", "barrier", "relaunch", "call"}


def errors(paths, daemon, *more):
    """|ln(estimated / measured)| of every kernel of the models."""
    out = []
    for path in paths:
        bench = ctl("bench", path, "--kernels", "--seconds", SECONDS, "--no-report", "--server", daemon.address, *more)[1]
        for kernel in bench["fused"]["kernels"]:
            out.append(abs(math.log(kernel["estimated_us"] / kernel["median_us"])))
    return out


def probe(rows, work, options):
    """One probe; then the same models with the constants of the spec and with those that were measured."""
    file = work / "constants.json"
    measured = ctl("probe", "--seconds", 0.3 if options.quick else 2, "--out", file)[1]["probe"]
    values = {c["name"]: c["value"] for c in measured["constants"]}
    rows.counted("probe: constants that are measured", CONSTANTS <= values.keys() and all(v > 0 for v in values.values()),
                 f"{len(values)} in {measured['seconds']:.1f} s, {measured['isa']}, {measured['threads']} threads", f">= {len(CONSTANTS)}, all > 0")
    kept = json.loads(file.read_text())["constants"]
    rows.counted("probe: constants in the file, each with unit and source", kept.keys() == values.keys() and
                 all(c["unit"] and "fusionctl probe" in c["source"] for c in kept.values()), len(kept), len(values))
    paths = [generate(work, model) for model in MODELS]
    with Daemon(work) as daemon:
        plans = [ctl("plan", paths[0], "--plan-only", "--server", daemon.address, *more)[1] for more in ((), ("--device-constants", file), ())]
        rows.counted("probe: plans with them name them and have a key of their own; plans without them keep theirs",
                     plans[1]["device"]["measured"] is not None and plans[0]["plan_key"] == plans[2]["plan_key"] != plans[1]["plan_key"],
                     plans[1]["target"], f"{plans[0]['target']}+probe-DATE-DIGEST")
        if options.quick:
            return  # these rows need an idle machine
        spec, probed = errors(paths, daemon), errors(paths, daemon, "--device-constants", file)
    rows.timed("probe: median |ln(estimated / measured)| over kernels, with measured constants", statistics.median(probed) <= statistics.median(spec),
               f"{statistics.median(probed):.3f}, of {plans[0]['target']} {statistics.median(spec):.3f}", "at most that of the spec")
