"""How far estimates are from measured times on this machine, with the constants of the spec and with fitted ones: rows of learning.sh."""

import json
import statistics

from common import Daemon, ctl, generate

# Of every kind of model; the fit is judged on those whose kernels it has not seen.
MODELS = ("bert_layer", "vit_block", "gpt2_layer", "gpt2_layer_decode", "llama_small", "llama_small_decode", "t5_encoder", "t5_decoder",
          "mha", "mha_nomask", "mha_q1", "mlp", "mlp4_m64_n1024", "mlp8_m1024_n128", "swiglu", "add_relu", "bias_gelu", "layernorm",
          "softmax", "scale_mask_softmax", "conv_bn_relu", "mbconv", "depthwise")
# A kernel that several models have counts as one of the model that was reported last: some models have none of their own.
LEAST_MODELS = len(MODELS) - 3
SECONDS = 2
# Median and 90 % quantile of |ln(measured / estimated)|.
KERNELS = (0.08, 0.25)
PLANS = (0.05, 0.15)
FALSE = 2  # a spec with rates and bandwidths of this part


def device_rows(rows, device, name):
    rows.counted(f"{name}: models that are held back", device["models"] >= LEAST_MODELS and device["held_back"]["timings"] > 0 and
                 device["held_back_plans"]["timings"] >= LEAST_MODELS,
                 f"{device['models']}, {device['held_back']['timings']} timings, {device['held_back_plans']['timings']} plans",
                 f"{LEAST_MODELS} of {len(MODELS)}")
    for what, key, bars in (("kernels", "", KERNELS), ("whole plans", "_plans", PLANS)):
        spec, fitted = device["spec" + key], device["held_back" + key]
        rows.timed(f"{name}: median and p90 of |ln|, {what}, fitted to other models", fitted["median"] <= bars[0] and fitted["p90"] <= bars[1],
                   f"{fitted['median']:.3f}, {fitted['p90']:.3f}; of the spec {spec['median']:.3f}, {spec['p90']:.3f}",
                   f"<= {bars[0]}, {bars[1]}")
    rows.counted(f"{name}: no constant ends at the bounds of the fit", all(1 / 63 < c["factor"] < 63 for c in device["constants"]),
                 "measured / spec: " + ", ".join(f"{c['name']} {c['factor']:.2f}" for c in device["constants"]), "1/64 .. 64")


def false_constants(path):
    """What fusionctl probe measures here, with bandwidths and rates that are wrong."""
    ctl("probe", "--out", path)
    content = json.loads(path.read_text())
    for name, constant in content["constants"].items():
        if name.endswith("rate") or name.endswith("bandwidth"):
            constant["value"] /= FALSE
            constant["source"] += f", divided by {FALSE}"
    path.write_text(json.dumps(content))
    return path


def bench(paths, daemon, threads, *more):
    for path in paths:
        ctl("bench", path, "--threads", threads, "--seconds", SECONDS, "--server", daemon.address, *more)


def accuracy(rows, work, options):
    """One service that learns from the benches of all models, with one thread and with two, and of a device whose spec is wrong."""
    if options.quick:
        return  # observability.py calls it; these rows need an idle machine
    paths = [generate(work, model) for model in MODELS]
    with Daemon(work, store=work / "accuracy") as daemon:
        for threads in (1, 2):
            bench(paths, daemon, threads)
        devices = ctl("report", "--accuracy", "--server", daemon.address)[1]["devices"]
    rows.counted("accuracy: devices that were measured", sorted(d["threads"] for d in devices) == [1, 2],
                 ", ".join(f"{d['target']} {d['isa']} {d['threads']}" for d in devices), "1 and 2 threads")
    for device in devices:
        device_rows(rows, device, f"accuracy, {device['threads']} thread{'s' * (device['threads'] > 1)}")
    wrong = false_constants(work / "wrong.json")
    with Daemon(work, store=work / "wrong") as daemon:
        bench(paths, daemon, 1, "--device-constants", wrong)
        devices = ctl("report", "--accuracy", "--server", daemon.address)[1]["devices"]
    rows.counted("accuracy: a device whose rates and bandwidths are wrong", len(devices) == 1, ", ".join(d["target"] for d in devices), "one")
    for device in devices:
        device_rows(rows, device, f"accuracy, rates and bandwidths divided by {FALSE}")
        factors = [c["factor"] for c in device["constants"] if c["name"] not in ("launch", "barrier", "task")]
        rows.timed(f"accuracy, rates and bandwidths divided by {FALSE}: the fit finds that out", statistics.median(factors) <= 1.5 / FALSE,
                   f"median factor of rates and bandwidths {statistics.median(factors):.2f}", f"<= {1.5 / FALSE:.2f}")
