"""Runs a model three times in onnxruntime with an arena that grows by what is asked for. The last "Total allocated bytes"
of its log, on stderr, is what the arena holds: weights, packed copies, activations. Runs in the venv of
tests/bench/peers.

  ort_arena.py MODEL THREADS
"""

import sys

import numpy as np
import onnxruntime as ort

model, threads = sys.argv[1], int(sys.argv[2])
SAME_AS_REQUESTED = 1
memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
ort.create_and_register_allocator(memory, ort.OrtArenaCfg(0, SAME_AS_REQUESTED, -1, -1))
ort.set_default_logger_severity(1)
options = ort.SessionOptions()
options.intra_op_num_threads = threads
options.add_session_config_entry("session.use_env_allocators", "1")
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
feeds = {}
for i in session.get_inputs():
    dtype = np.float32 if "float" in i.type else bool if "bool" in i.type else np.int64 if "64" in i.type else np.int32
    feeds[i.name] = np.ones(i.shape, dtype=dtype)
for _ in range(3):
    session.run(None, feeds)
