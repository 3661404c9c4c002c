"""Memory rows of tests/acceptance/models.sh: what a loaded model holds, beside onnxruntime's arena and beside what the plan
says. Standard library only; onnxruntime runs in a venv of its own."""

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench/peers"))

import contender
import width
from common import BIN, Daemon, ctl, generate, run

QUICK = ["bert_tiny", "llama_small", "conv_residual_relu"]
MODELS = ["bert_layer", "bert_12l", "gpt2_layer_decode", "llama_small", "t5_encoder", "vit_patch", "mlp", "lstm_unroll10",
          "conv_bn_relu", "mbconv"]
RSS_BEYOND = 100 << 20  # the program itself, and what loading takes for a moment
ARENA = pathlib.Path(__file__).with_name("ort_arena.py")


def mib(size):
    return f"{size / (1 << 20):.1f} MiB"


def arena_of_onnxruntime(python, model):
    done = run(python, ARENA, model, "1")
    totals = re.findall(r"Total allocated bytes: (\d+)", done.stderr)
    if not totals:
        raise RuntimeError("onnxruntime's log has no \"Total allocated bytes\"")
    return int(totals[-1])


def held(memory):
    """Beside inputs and outputs: between kernels, in kernels, packed weights, those read as they are, constants."""
    return sum(memory[f"{part}_bytes"] for part in ("arena", "work", "prepared", "weight", "constant"))


def arena_row(rows, name, model, server, python):
    _, said = ctl("bench", model, "--seconds", "0.05", "--threads", "1", "--server", server)
    ours, theirs = held(said["fused"]["memory"]), arena_of_onnxruntime(python, model)
    rows.counted(f"{name}: memory of a loaded model", ours <= theirs, f"{mib(ours)}, onnxruntime's arena {mib(theirs)}",
                 "<= onnxruntime's, kSameAsRequested")


def peak_rss(*argv):
    """Of one program, in bytes."""
    process = subprocess.Popen([str(a) for a in argv], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{argv[0]}: exit {process.returncode}")
    return usage.ru_maxrss * 1024


def rss_row(rows, name, model, server):
    _, said = ctl("bench", model, "--seconds", "0.05", "--server", server)
    memory = said["fused"]["memory"]
    weights = model.stat().st_size
    allowed = weights + memory["prepared_bytes"] + memory["arena_bytes"] + memory["work_bytes"] + RSS_BEYOND
    peak = peak_rss(BIN / "fusionctl", "run", model, "--server", server)
    rows.counted(f"{name}: peak RSS of fusionctl run", peak <= allowed, f"{mib(peak)} of {mib(allowed)}",
                 "<= weights + packed copies + arena + 100 MiB")


def memory_rows(rows, work, options):
    python = contender.peer_python()
    parameters = width.generated_models()
    with Daemon(work) as daemon:
        for name in QUICK if options.quick else MODELS:
            model = generate(work, name, *(width.small_arguments(parameters[name]) if options.quick else []))
            if python is None:
                rows.add("UNMEASURED", f"{name}: memory of a loaded model", "PyPI cannot be reached", "")
            else:
                rows.section(arena_row, name, model, daemon.address, python)
            rows.section(rss_row, name, model, daemon.address)
