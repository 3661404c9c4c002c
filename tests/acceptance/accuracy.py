"""How far estimates are from measured times on this machine, with the constants of the spec and with fitted ones: rows of learning.sh."""

from common import Daemon, ctl, generate

# Of every kind of model; the fit is judged on those whose kernels it has not seen.
MODELS = ("bert_layer", "vit_block", "gpt2_layer", "gpt2_layer_decode", "llama_small", "llama_small_decode", "t5_encoder", "t5_decoder",
          "mha", "mha_nomask", "mha_q1", "mlp", "mlp4_m64_n1024", "mlp8_m1024_n128", "swiglu", "add_relu", "bias_gelu", "layernorm",
          "softmax", "scale_mask_softmax", "conv_bn_relu", "mbconv", "depthwise")
SECONDS = 2
MEDIAN, P90 = 0.08, 0.25  # of |ln(measured / estimated)|, over kernels


def accuracy(rows, work, options):
    """One service that learns from the benches of all models, with one thread and with two."""
    if options.quick:
        return  # observability.py calls it; these rows need an idle machine
    paths = [generate(work, model) for model in MODELS]
    with Daemon(work, store=work / "accuracy") as daemon:
        for threads in (1, 2):
            for path in paths:
                ctl("bench", path, "--threads", threads, "--seconds", SECONDS, "--server", daemon.address)
        devices = ctl("report", "--accuracy", "--server", daemon.address)[1]["devices"]
    rows.counted("accuracy: devices that were measured", sorted(d["threads"] for d in devices) == [1, 2],
                 ", ".join(f"{d['target']} {d['isa']} {d['threads']}" for d in devices), "1 and 2 threads")
    for device in devices:
        name = f"accuracy, {device['threads']} thread{'s' * (device['threads'] > 1)}"
        rows.counted(f"{name}: models that are held back", device["models"] == len(MODELS) and device["held_back"]["timings"] > 0,
                     f"{device['models']}, {device['held_back']['timings']} timings", f"all {len(MODELS)}")
        spec, fitted = device["spec"], device["held_back"]
        rows.timed(f"{name}: median and p90 of |ln|, fitted to other models", fitted["median"] <= MEDIAN and fitted["p90"] <= P90,
                   f"{fitted['median']:.3f}, {fitted['p90']:.3f}; of the spec {spec['median']:.3f}, {spec['p90']:.3f}",
                   f"<= {MEDIAN}, {P90}")
        rows.counted(f"{name}: no constant ends at the bounds of the fit", all(1 / 63 < c["factor"] < 63 for c in device["constants"]),
                     "measured / spec: " + ", ".join(f"{c['name']} {c['factor']:.2f}" for c in device["constants"]), "1/64 .. 64")
