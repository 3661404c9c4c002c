"""Run by the Python that has onnxruntime: MODEL THREADS SETTING [INPUTS.npz]. Inputs and outputs are bound to memory of its own.

SETTING: "default"; "none", no optimisation of the graph; "no-skip", all but its fusion of SkipLayerNormalization, which
is several times slower than the nodes that it replaces. INPUTS.npz: values of inputs, in place of those of worker.values.
"""

import sys

import numpy as np
import onnxruntime as ort

import worker

TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(bool)": np.bool_,
         "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8}

model, threads, setting = sys.argv[1], int(sys.argv[2]), sys.argv[3]
options = ort.SessionOptions()
options.intra_op_num_threads = threads
options.inter_op_num_threads = 1
options.graph_optimization_level = (ort.GraphOptimizationLevel.ORT_DISABLE_ALL if setting == "none" else
                                    ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
if setting == "no-skip":
    options.add_session_config_entry("optimization.disable_specified_optimizers", "SkipLayerNormFusion")
options.log_severity_level = 3
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
given = np.load(sys.argv[4]) if len(sys.argv) > 4 else {}
feeds = {i.name: given[i.name] if i.name in given else worker.values(i.shape, TYPES[i.type]) for i in session.get_inputs()}
binding = session.io_binding()
kept = [ort.OrtValue.ortvalue_from_numpy(value) for value in feeds.values()]
for name, value in zip(feeds, kept):
    binding.bind_ortvalue_input(name, value)
for i, value in zip(session.get_outputs(), session.run(None, feeds)):
    kept.append(ort.OrtValue.ortvalue_from_numpy(np.empty_like(value)))
    binding.bind_ortvalue_output(i.name, kept[-1])
worker.serve(lambda: session.run_with_iobinding(binding), lambda: session.run(None, feeds))
