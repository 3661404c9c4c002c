"""Run by the Python that has onnxruntime: MODEL THREADS all|none.

Loads the model once, binds inputs and outputs to memory of its own, and for each number on stdin times so many runs:
one line on stdout, a JSON list of the microseconds of each, the first one left out. Floats are normal, everything else
is ones, which every model takes as masks, indices and positions.
"""

import json
import sys
import time

import numpy as np
import onnxruntime as ort

model, threads, level = sys.argv[1], int(sys.argv[2]), sys.argv[3]
options = ort.SessionOptions()
options.intra_op_num_threads = threads
options.inter_op_num_threads = 1
options.graph_optimization_level = (ort.GraphOptimizationLevel.ORT_ENABLE_ALL if level == "all" else
                                    ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
options.log_severity_level = 3
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
random = np.random.default_rng(1)
feeds = {}
for i in session.get_inputs():
    if "float" in i.type:
        feeds[i.name] = random.standard_normal(i.shape, dtype=np.float32)
    elif "bool" in i.type:
        feeds[i.name] = np.ones(i.shape, dtype=bool)
    else:
        feeds[i.name] = np.ones(i.shape, dtype=np.int64 if "64" in i.type else np.int32)
binding = session.io_binding()
kept = [ort.OrtValue.ortvalue_from_numpy(value) for value in feeds.values()]
for name, value in zip(feeds, kept):
    binding.bind_ortvalue_input(name, value)
for i, value in zip(session.get_outputs(), session.run(None, feeds)):
    kept.append(ort.OrtValue.ortvalue_from_numpy(np.empty_like(value)))
    binding.bind_ortvalue_output(i.name, kept[-1])
for _ in range(2):
    session.run_with_iobinding(binding)
for line in sys.stdin:
    times = []
    for _ in range(int(line) + 1):
        start = time.perf_counter()
        session.run_with_iobinding(binding)
        times.append((time.perf_counter() - start) * 1e6)
    print(json.dumps(times[1:]), flush=True)
