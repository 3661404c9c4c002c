"""Run by the Python that has torch: MODEL THREADS. torch.compile with Inductor for the CPU, in f32.

Set as it is fastest for inference: weights are constants (freezing packs them and folds batch normalisation into convolutions),
and max-autotune measures its own matrix products beside those of oneDNN and MKL. What it compiled is kept in the venv.
"""

import os
import sys

import worker  # first: what libraries print must not be taken for an answer

model, threads = sys.argv[1], int(sys.argv[2])
os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(sys.prefix, "inductor")

import numpy as np
import torch
import torch._inductor.config
import torch.fx
import torch.nn.functional as F

import onnx_graph

torch.set_num_threads(threads)
torch.set_float32_matmul_precision("highest")


class Lib:
    """Spells what onnx_graph.py asks for; traced, not run."""

    abs, cos, exp, log, sin, sqrt, tanh = torch.abs, torch.cos, torch.exp, torch.log, torch.sin, torch.sqrt, torch.tanh
    erf, sigmoid, relu, leaky_relu = torch.erf, torch.sigmoid, torch.relu, staticmethod(F.leaky_relu)
    where, matmul, transpose, reshape, softmax = torch.where, torch.matmul, torch.permute, torch.reshape, torch.softmax
    concat, clip, mean, broadcast_to = torch.cat, torch.clamp, torch.mean, torch.broadcast_to

    def __init__(self):
        self.root, self.trace = torch.nn.Module(), torch.fx.Graph()
        self.trace.owning_module = self.root
        self.tracer = torch.fx.proxy.GraphAppendingTracer(self.trace)

    def proxy(self, node):
        return torch.fx.Proxy(node, self.tracer)

    def constant(self, value):
        name = f"constant_{len(self.root._buffers)}"
        self.root.register_buffer(name, torch.from_numpy(np.array(value)))
        return self.proxy(self.trace.get_attr(name))

    def minimum(self, a, b):
        return torch.clamp(a, max=b)

    def maximum(self, a, b):
        return torch.clamp(a, min=b)

    def cast(self, x, dtype):
        return x.to(getattr(torch, dtype))

    def arange(self, *bounds):
        return self.proxy(self.trace.call_function(torch.arange, bounds))

    def take(self, x, index, axis, shape):
        taken = torch.index_select(x, axis, torch.reshape(index, [-1]))
        return torch.unflatten(taken, axis, shape) if len(shape) != 1 else taken

    def batch_norm(self, x, scale, bias, mean, variance, epsilon):
        return F.batch_norm(x, mean, variance, scale, bias, eps=epsilon)

    def conv(self, x, weight, bias, strides, pads, group):
        if any(begin != end for begin, end in pads):
            x = F.pad(x, [side for pair in reversed(pads) for side in pair])
            pads = [(0, 0)] * len(pads)
        return torch.conv2d(x, weight, bias, strides, [begin for begin, _ in pads], 1, group)

    def max_pool(self, x, kernel, strides, pads):
        assert all(begin == end for begin, end in pads)
        return F.max_pool2d(x, kernel, strides, [begin for begin, _ in pads])

    def lstm(self, x, zeros, *weights):
        return torch.lstm(x, (zeros, zeros), weights, True, 1, 0.0, False, False, False)

    def attention(self, q, k, v, mask, causal):
        q, k, v = [torch.transpose(x, 1, 2) for x in (q, k, v)]
        return torch.transpose(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal), 1, 2)

    def rms_norm(self, x, scale, epsilon):
        return F.rms_norm(x, [scale.shape[0]], scale, epsilon)


def module_of(graph):
    lib = Lib()
    values = {name: lib.proxy(lib.trace.placeholder(f"input_{i}")) for i, name in enumerate(graph.inputs)}
    values |= {name: lib.constant(value) for name, value in graph.weights.items()}
    lib.trace.output(tuple(value.node for value in graph.evaluate(lib, values)))
    lib.trace.eliminate_dead_code()
    return torch.fx.GraphModule(lib.root, lib.trace).eval()


graph = onnx_graph.Graph(model)
inputs = [torch.from_numpy(worker.values(shape, dtype)) for shape, dtype in graph.inputs.values()]
torch._inductor.config.freezing = True
with torch.no_grad():
    run = torch.compile(module_of(graph), fullgraph=True, mode="max-autotune")
    worker.serve(lambda: run(*inputs), lambda: [value.numpy() for value in run(*inputs)])
