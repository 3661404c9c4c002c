"""Rows of tests/acceptance/models.sh: model files that onnxruntime has optimised. Standard library only; onnxruntime runs in
a venv of its own."""

import pathlib

import common
import export
from common import Daemon, ctl, generate

# Of the generator, at small sizes: attention, residual norms, Gelus and activations behind products and convolutions.
QUICK = ["bert_tiny", "conv_residual_relu", "mlp"]
GENERATED = QUICK + ["gpt2_layer", "t5_encoder", "vit_patch", "bias_gelu", "add_bias_layernorm", "mbconv", "llama_small"]


def cases_of(work, options):
    parameters = export.width.generated_models()
    names = QUICK if options.quick else GENERATED
    cases = [export.Case(name, generate(work, name, *export.width.small_arguments(parameters[name])), None)
             for name in names]
    if not options.quick:
        for model in sorted((pathlib.Path(options.data) / "models").glob("*/*/model.onnx")):
            data = model.parent / "test_data_set_0"
            cases.append(export.Case(model.parent.name, model, data if (data / "input_0.pb").exists() else None))
    return cases


def verify(case, work, python, server):
    """Plans and runs the optimised file on the outputs of the original; onnxruntime's operators in it."""
    inputs, out, data = (work / f"{case.name}.{kind}" for kind in ("npz", "optimised.onnx", "data"))
    dims = export.worker(python, "inputs", case.model, inputs, *([case.data] if case.data else []))
    operators = export.worker(python, "optimise", case.model, out, inputs, data)
    bind = [word for name, value in dims.items() for word in ("--bind", f"{name}={value}")]
    status, said = ctl("verify", out, *bind, "--data", data, "--server", server, check=False)
    if status != 0:
        case.fail(said.get("error", {}).get("message") or "outputs differ from the original's")
    return operators


def optimised_rows(rows, work, options):
    python = export.contender.peer_python()
    if python is None:
        rows.add("UNMEASURED", "files that onnxruntime has optimised", "PyPI cannot be reached", "equal outputs")
        return
    cases, operators = [], set()
    with Daemon(work) as daemon:
        for case in cases_of(work, options):
            try:
                found = verify(case, pathlib.Path(work), python, daemon.address)
                operators.update(found)
            except RuntimeError as error:
                if case.data is not None:  # an exported graph that onnxruntime does not run
                    print(f"# {case.name}: {common.one_line(error)[:160]}")
                    continue
                case.fail(error)
            cases.append(case)
            for failure in case.failures:
                print(f"           left: {failure[:200]}", flush=True)
    failures = [case for case in cases if case.failures]
    rows.counted("files that onnxruntime has optimised match the original", cases and not failures,
                 f"{len(cases) - len(failures)} of {len(cases)}, with {len(operators)} of its operators",
                 "every file that it writes (ORT_ENABLE_EXTENDED)")
