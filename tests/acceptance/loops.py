"""Rows about loops: launches that run once in every pass. Standard library only."""

import struct

from common import Daemon, ctl, generate

PASSES = (0, 1, 7, 300, 4096)
STEPS = (128, 4096)
OPEN = ((0, 3), (1, 1), (17, 8), (512, 2), (100, 5))


def scalar(path, value):
    """An int64 of no dims in NumPy's format."""
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': (), }"
    header = header.ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<q", value))
    return path


def passes_row(rows, work, server):
    model = generate(work, "loop")
    wrong, keys = [], set()
    for passes in PASSES:
        count = scalar(work / "passes.npy", passes)
        status, said = ctl("verify", model, "--input", f"passes={count}", "--server", server, check=False)
        if status != 0 or not said.get("pass"):
            wrong.append(f"{passes}: {said.get('error', {}).get('message', 'outside the tolerance')}")
        keys.add(said.get("plan_key"))
    rows.counted("loops: right with as many passes as a run says", not wrong and len(keys) == 1,
                 "; ".join(wrong) or f"{len(PASSES)} of {len(PASSES)}, {len(keys)} plan",
                 f"{', '.join(map(str, PASSES))} passes, one plan")
    count = scalar(work / "passes.npy", PASSES[-1] + 1)
    status, said = ctl("run", model, "--input", f"passes={count}", "--server", server, check=False)
    message = said.get("error", {}).get("message", "")
    rows.counted("loops: more passes than there is room for are an error", status != 0 and "more than 4096" in message,
                 message or "none", "an error that says so")


def steps_row(rows, work, server):
    wrong, kernels = [], []
    for steps in STEPS:
        model = generate(work, "lstm", "--depth", str(steps), file=f"lstm{steps}.onnx")
        status, said = ctl("verify", model, "--server", server, check=False)
        if status != 0 or not said.get("pass"):
            wrong.append(f"{steps}: {said.get('error', {}).get('message', 'outside the tolerance')}")
        _, plan = ctl("plan", model, "--plan-only", "--server", server)
        kernels.append(len(plan["kernels"]))
    rows.counted("loops: a longer sequence takes no more kernels", not wrong and len(set(kernels)) == 1,
                 "; ".join(wrong) or f"{' and '.join(map(str, kernels))} of an LSTM of {' and '.join(map(str, STEPS))} "
                 "steps, right", "as many")


def open_row(rows, work, server):
    """One plan for every length and batch, nothing compiled after the first, and again by its lock."""
    model = generate(work, "lstm", "--hidden", "64", "--cols", "40", "--dyn", file="open_lstm.onnx")
    open_dims = ["--range", "seq=0..512", "--range", "batch=1..8"]
    lock = work / "open_lstm.lock"
    status, first = ctl("plan", model, *open_dims, "--write-lock", lock, "--server", server, check=False)
    if status != 0:
        rows.counted("loops: one plan for every length of a sequence", False, first["error"]["message"], "a plan")
        return
    keys, wrong = set(), []
    for seq, batch in OPEN:
        at = ["--bind", f"seq={seq}", "--bind", f"batch={batch}"]
        status, said = ctl("verify", model, *open_dims, *at, "--server", server, check=False)
        if status != 0 or not said.get("pass"):
            wrong.append(f"{seq}x{batch}: {said.get('error', {}).get('message', 'outside the tolerance')}")
        keys.add(said.get("plan_key"))
    _, again = ctl("plan", model, *open_dims, "--lock", lock, "--server", server)
    compiled = sum(not kernel["cached"] for kernel in again["kernels"])
    rows.counted("loops: one plan for every length of a sequence", not wrong and len(keys) == 1,
                 "; ".join(wrong) or f"{len(OPEN)} of {len(OPEN)}, {len(keys)} plan", "seq 0..512, batch 1..8, one plan")
    rows.counted("loops: the same plan again by its lock", compiled == 0 and again["launches"] == first["launches"],
                 f"{compiled} of {len(again['kernels'])} kernels compiled", "the same launches, 0 compiled")


def loop_rows(rows, work, options):
    with Daemon(work) as daemon:
        passes_row(rows, work, daemon.address)
        steps_row(rows, work, daemon.address)
        open_row(rows, work, daemon.address)
