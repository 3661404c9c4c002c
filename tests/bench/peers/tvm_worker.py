"""Run by the Python that has tvm: MODEL THREADS [TRIALS]. Relax, its kernels found by MetaSchedule with so many trials in all.

Without any, TVM's loops for the CPU are not tiled; its authors recommend thousands. What was found is kept in the venv, for the
next run of the same model with as many threads.
"""

import hashlib
import os
import pathlib
import sys

import worker  # first: what libraries print must not be taken for an answer

model, threads, trials = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 64
os.environ["TVM_NUM_THREADS"] = str(threads)

import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx
from tvm.s_tir import meta_schedule as ms
from tvm.target import codegen

import onnx_graph

target = tvm.target.Target({"kind": "llvm", "mcpu": codegen.llvm_get_system_cpu(), "num-cores": threads})
digest = hashlib.sha256(pathlib.Path(model).read_bytes()).hexdigest()[:16]
found = pathlib.Path(sys.prefix) / f"tuned/{digest}-{threads}-{trials}"


def kernels(module):
    """Operators as loops, fused, weights in the layout that the search likes."""
    for step in (relax.transform.DecomposeOpsForInference(), relax.transform.CanonicalizeBindings(), relax.get_pipeline("zero"),
                 relax.transform.AttachAttrLayoutFreeBuffers()):
        module = step(module)
    if not (found / "done").exists():
        found.mkdir(parents=True, exist_ok=True)
        tasks = len(ms.relax_integration.extract_tasks(module, target))
        each = max(trials // max(tasks, 1), 4)
        ms.relax_integration.tune_relax(module, {}, target, str(found), max_trials_global=each * tasks,
                                        max_trials_per_task=each, num_trials_per_iter=min(each, 16), seed=1)
        (found / "done").touch()
    for step in (relax.transform.MetaScheduleApplyDatabase(str(found)), relax.transform.SplitLayoutRewritePreproc(),
                 relax.transform.LiftTransformParams(), relax.transform.FoldConstant()):
        module = step(module)
    return module


module, weights = relax.frontend.detach_params(from_onnx(onnx.load(model), keep_params_in_input=True))
with target:
    module = kernels(module)
machine = relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())
packed = list(weights.get("main", []))
if "main_transform_params" in [variable.name_hint for variable in module.get_global_vars()]:
    packed = list(machine["main_transform_params"](packed))
inputs = [tvm.runtime.tensor(worker.values(shape, dtype)) for shape, dtype in onnx_graph.Graph(model).inputs.values()]
machine.set_input("main", *inputs, *packed)


def outputs():
    machine.invoke_stateful("main")
    found = machine.get_outputs("main")
    return [value.numpy() for value in ([found] if isinstance(found, tvm.runtime.Tensor) else found)]


worker.serve(lambda: machine.invoke_stateful("main"), outputs)
