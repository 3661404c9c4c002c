"""Rows of tests/acceptance/export.sh. Standard library only; onnxruntime runs in a venv of its own."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench/peers"))

import common
import contender
import width
from common import ROOT, Daemon, ctl, generate, run

# Of the generator: as it makes them, and for a quick run small.
QUICK = ["bert_tiny", "llama_small", "conv_residual_relu"]
GENERATED = ["bert_tiny", "bert_layer", "albert_12l", "vit_patch", "gpt2_layer_decode", "llama_small", "t5_encoder",
             "t5_decoder", "mlp", "lstm_unroll10", "conv_bn_relu", "mbconv"]
LEAST_MODELS = 20
WORKER = pathlib.Path(__file__).with_name("ort_outputs.py")


class Case:
    """A model, its inputs, and what became of it."""

    def __init__(self, name, model, data):
        self.name, self.model, self.data = name, model, data
        self.bind = []
        self.failures = []

    def fail(self, what):
        self.failures.append(f"{self.name}: {common.one_line(what)[:160]}")


def worker(python, *argv):
    done = run(python, WORKER, *argv, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"exit {done.returncode}")
    return json.loads(done.stdout)


def find_cases(work, options):
    if options.quick:
        parameters = width.generated_models()
        return [Case(name, generate(work, name, *width.small_arguments(parameters[name])), None) for name in QUICK]
    cases = [Case(name, generate(work, name), None) for name in GENERATED]
    for model in sorted((pathlib.Path(options.data) / "models").glob("*/*/model.onnx")):
        data = model.parent / "test_data_set_0"
        cases.append(Case(model.parent.name, model, data if (data / "input_0.pb").exists() else None))
    return cases


def supported(case, server):
    """Whether we plan it at all: what we do not is no case of an export."""
    status, said = ctl("plan", case.model, *case.bind, "--plan-only", "--server", server, check=False)
    if status != 0:
        print(f"# {case.name}: {said['error']['message'][:160]}")
    return status == 0


def export(case, work, server):
    case.fused = pathlib.Path(work) / f"{case.name}.fused.onnx"
    status, said = ctl("export", case.model, "--fused", "--out", case.fused, *case.bind, "--server", server, check=False)
    if status != 0:
        case.fail(said["error"]["message"])
        return
    case.plan_key = said["plan_key"]
    case.whole, case.groups = said["whole"], len(said["groups"])


def share(cases):
    return f"{sum(not c.failures for c in cases)} of {len(cases)}"


def counted(rows, row, cases, figure, bar):
    """One row for all cases; the first that failed are its figure."""
    failures = [f for c in cases for f in c.failures]
    rows.counted(row, cases and not failures, "; ".join(failures[:3]) or figure, bar)
    for c in cases:
        c.failures = []


def compare(rows, cases, python, least):
    for case in cases:
        try:
            found = worker(python, "compare", case.model, case.fused, case.inputs)
        except RuntimeError as error:
            case.fail(error)
            continue
        case.worst = max((float(o["max_rel"]) for o in found), default=0)
        case.identical = all(o["identical"] for o in found)
        for output in found:
            if not output["equal"]:
                case.fail(f"{output['name']}: {output['words']}")
    if len(cases) < least:
        rows.counted("enough models", False, str(len(cases)), f"at least {least}")
    good = [c for c in cases if not c.failures]
    counted(rows, "fused exports run in onnxruntime", cases,
            f"{share(cases)} models equal, {sum(c.identical for c in good)} bit by bit, "
            f"max_rel {max((c.worst for c in good), default=0):.1e}",
            "each output as of the original: floats within 1e-6 + 1e-5 max|b|, else equal")


def again(rows, cases, server):
    """The files sent in again."""
    for case in cases:
        status, said = ctl("plan", case.fused, *case.bind, "--plan-only", "--server", server, check=False)
        message = said.get("error", {}).get("message", "planned")
        if status != 3 or not message.startswith("ALREADY_FUSED: "):
            case.fail(f"exit {status}: {message}")
    counted(rows, "a fused file sent again is refused", cases, f"{share(cases)} files", "ALREADY_FUSED, exit status 3")
    for case in cases:
        status, said = ctl("plan", case.fused, *case.bind, "--allow-fused", "--plan-only", "--server", server, check=False)
        key = said.get("plan_key") or said["error"]["message"]
        if key != case.plan_key:
            case.fail(key)
    counted(rows, "--allow-fused: understood, not fused twice", cases, f"{share(cases)} files",
            "the plan key of the original")
    passed = 0
    for case in cases:
        _, fused = ctl("verify", case.fused, *case.bind, "--allow-fused", "--data", case.inputs, "--server", server, check=False)
        _, plain = ctl("verify", case.model, *case.bind, "--data", case.inputs, "--server", server, check=False)
        passed += fused.get("pass", False)
        if fused.get("pass") != plain.get("pass") or "error" in fused:
            case.fail(fused.get("error", {}).get("message") or f"pass {fused['pass']}, the original {plain['pass']}")
    counted(rows, "fusionctl verify --allow-fused, on the same data", cases,
            f"{share(cases)} files, {passed} pass", "the verdict of the original")


def measure(rows, work, options):
    python = contender.peer_python()
    if python is None:
        rows.add("UNMEASURED", "fused exports run in onnxruntime", "PyPI cannot be reached", "equal outputs")
        return
    with Daemon(work) as daemon:
        cases = []
        for case in find_cases(work, options):
            case.inputs = pathlib.Path(work) / f"{case.name}.npz"
            try:
                dims = worker(python, "inputs", case.model, case.inputs, *([case.data] if case.data else []))
            except RuntimeError as error:  # onnxruntime does not run the original
                print(f"# {case.name}: {common.one_line(error)[:160]}")
                continue
            case.bind = [word for name, value in dims.items() for word in ("--bind", f"{name}={value}")]
            if supported(case, daemon.address):
                export(case, work, daemon.address)
                cases.append(case)
        counted(rows, "fusionctl export --fused", cases,
                f"{share(cases)} models, {sum(c.whole for c in cases if not c.failures)} of "
                f"{sum(c.groups for c in cases if not c.failures)} groups are one node each", "exit status 0")
        cases = [c for c in cases if hasattr(c, "plan_key")]
        compare(rows, cases, python, len(QUICK) if options.quick else LEAST_MODELS)
        again(rows, cases, daemon.address)


def main():
    return common.main("Fused export", "export", measure, lambda parser: parser.add_argument(
        "--data", default=ROOT.parent / "shared", help="directory with models/; default: ../shared"))


if __name__ == "__main__":
    sys.exit(main())
