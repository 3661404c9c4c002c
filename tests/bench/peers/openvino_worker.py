"""Run by the Python that has openvino: MODEL THREADS. Arithmetic in f32: as it comes it would use bf16 where the CPU has it."""

import sys

import numpy as np
import openvino as ov

import worker

model, threads = sys.argv[1], int(sys.argv[2])
compiled = ov.Core().compile_model(model, "CPU", {
    "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"})
request = compiled.create_infer_request()
for port in compiled.inputs:
    request.set_tensor(port, ov.Tensor(worker.values(list(port.shape), port.element_type.to_dtype())))


def outputs():
    request.infer()
    return [np.array(request.get_tensor(port).data) for port in compiled.outputs]


worker.serve(request.infer, outputs)
